import { readAlertGroup } from './core/alert-group.ts';
import type { CallerFormat } from './core/caller-format.ts';
import { moodOfLevel } from './core/levels.ts';
import { card, messageForm, type Card, type Field, type KnownAlert, type MessageForm } from './core/message-form.ts';
import { MAX_FIELDS } from './core/render-text.ts';
import { entriesOf, firstStringOf, objectsOf, stringOf, type JsonObject } from './core/values.ts';
import { alertmanager } from './alertmanager.ts';

/**
 * The webhook of Grafana. Since version 9 it sends Alertmanager's body, with a title and a message added. Earlier
 * versions send one alert rule in each request.
 */
export const grafana: CallerFormat = {
  name: 'grafana',
  isSignedBySenders: true,
  matches: (request) =>
    isLegacy(request.body) ||
    (alertmanager.matches(request) && ['state', 'orgId', 'title'].some((name) => name in request.body)),
  read: ({ body }) => (isLegacy(body) && !Array.isArray(body['alerts']) ? readLegacy(body) : readUnified(body)),
};

const isLegacy = (body: JsonObject): boolean =>
  typeof body['ruleName'] === 'string' && typeof body['state'] === 'string';

/**
 * The beginnings of Grafana's default titles and messages, which are not shown, since they say less than the alerts do.
 */
const DEFAULT_TITLE = /^\s*\[(?:FIRING:\d+|RESOLVED)[^\]\n]{0,40}\]/;
const DEFAULT_MESSAGE = /^\s*\*\*(?:Firing|Resolved)\*\*\s{0,4}\n\s{0,4}Value: /;

function readUnified(body: JsonObject): MessageForm {
  const group = readAlertGroup(body, { urls: urlsOf, measuredValues: measuredText });
  const [title, message] = [stringOf(body['title']), stringOf(body['message'])];
  const isCustomMessage = message.trim() !== '' && !DEFAULT_MESSAGE.test(message);
  const isCustomTitle = title.trim() !== '' && !DEFAULT_TITLE.test(title);
  const alerts = objectsOf(body['alerts'], MAX_FIELDS);
  const cardsKnowing = (knownAlert?: KnownAlert, shownFingerprints?: ReadonlySet<string>): Card[] => {
    const groupCard = group.cardOf(knownAlert, shownFingerprints);
    const cardWithMessage = isCustomMessage
      ? card({ ...groupCard, text: message, fields: [], links: groupCard.links.slice(0, 1), footer: '' })
      : groupCard;
    const image = firstStringOf(...alerts.map((each) => each['imageURL']));
    return [{ ...cardWithMessage, title: isCustomTitle ? title : groupCard.title, image }];
  };
  return messageForm({ cards: cardsKnowing(), alert: group.alert, cardsForKnownAlert: cardsKnowing });
}

const urlsOf = (alert: JsonObject): string[] =>
  ['panelURL', 'dashboardURL', 'generatorURL'].map((name) => stringOf(alert[name]));

const MAX_MEASURED_VALUES = 5;

/** A text such as `B=97.2, C=1`: the values of the alert rule's expressions, by the names of the expressions. */
function measuredText(alert: JsonObject): string {
  const values = entriesOf(alert['values'], MAX_MEASURED_VALUES);
  return values.map(([name, value]) => `${name}=${stringOf(value)}`).join(', ');
}

/**
 * Reads the body of a Grafana before version 9. Versions 5.2 to 8 write `ruleUrl` and `imageUrl`, earlier ones
 * `rule_url` and `image_url`.
 */
function readLegacy(body: JsonObject): MessageForm {
  const state = stringOf(body['state']);
  return messageForm({
    cards: [
      card({
        title: firstStringOf(body['title'], `[${state}] ${stringOf(body['ruleName'])}`),
        url: firstStringOf(body['ruleUrl'], body['rule_url']),
        mood: state === 'no_data' || state === 'pending' ? 'warning' : moodOfLevel(state),
        text: stringOf(body['message']),
        fields: [...matchFields(body['evalMatches']), ...tagFields(body['tags'])],
        image: firstStringOf(body['imageUrl'], body['image_url']),
      }),
    ],
  });
}

function matchFields(evalMatches: unknown): Field[] {
  return objectsOf(evalMatches, MAX_FIELDS).map((match) => ({
    name: stringOf(match['metric']),
    value: stringOf(match['value']),
    isShort: true,
  }));
}

function tagFields(tags: unknown): Field[] {
  return entriesOf(tags, MAX_FIELDS).map(([name, value]) => ({ name, value: stringOf(value), isShort: true }));
}
