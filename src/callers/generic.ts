import type { CallerFormat, CallerRequest } from './core/caller-format.ts';
import { moodOfLevel } from './core/levels.ts';
import { isMediaEvent, mediaEventCard } from './core/media-event.ts';
import { card, messageForm, type Card, type MessageForm } from './core/message-form.ts';
import { firstStringOf, stringOf, type JsonObject } from './core/values.ts';

const TEXT_FIELDS = ['text', 'message', 'msg', 'body', 'content', 'description', 'summary'] as const;
const TITLE_FIELDS = ['title', 'subject', 'name'] as const;
const LINK_FIELDS = ['url', 'link', 'click'] as const;
const LEVEL_FIELDS = ['status', 'level', 'severity', 'priority', 'type'] as const;
const IMAGE_FIELDS = ['image_url', 'imageUrl', 'image'] as const;
const LABEL_FIELDS = ['username', 'instanceName'] as const;

const anyOf = (body: JsonObject, names: readonly string[]): string => firstStringOf(...names.map((name) => body[name]));

/**
 * Any JSON object with the usual names of fields, such as `message` and `title`: from Home Assistant's `rest`,
 * shoutrrr, Proxmox, ElastAlert, or a script. Statping, and Sonarr and its relatives, have other fields, by which they
 * are recognized.
 */
export const generic: CallerFormat = {
  name: 'generic',
  matches: ({ body }) => anyOf(body, TEXT_FIELDS) !== '' || isMediaEvent(body) || isStatpingBody(body),
  read: readGeneric,
};

function readGeneric({ body }: CallerRequest): MessageForm {
  return messageForm({
    senderLabel: anyOf(body, LABEL_FIELDS) || null,
    iconUrl: firstStringOf(body['icon_url']) || null,
    cards: [cardOf(body)],
  });
}

/** Makes a card from a body in Klatch's own format: a `text`, with `title`, `url` and `level` if it has them. */
export function klatchFormatCard({ text, title, url, level }: JsonObject): Card {
  const mood = moodOfLevel(stringOf(level));
  return card({ title: stringOf(title), url: stringOf(url), mood, text: stringOf(text) });
}

function cardOf(body: JsonObject): Card {
  if (isMediaEvent(body)) return mediaEventCard(body);
  const moods = LEVEL_FIELDS.map((name) => moodOfLevel(stringOf(body[name])));
  const [title, text, state] = [anyOf(body, TITLE_FIELDS), anyOf(body, TEXT_FIELDS), onlineState(body)];
  const stateTitle = `${firstStringOf(title, `Service ${stringOf(body['id'])}`)} is ${state}`;
  return card({
    title: text === '' && state !== '' ? stateTitle : title,
    url: anyOf(body, LINK_FIELDS),
    text,
    mood: moods.find((mood) => mood !== null) ?? moodOfLevel(state),
    image: anyOf(body, IMAGE_FIELDS),
  });
}

/** True for the default body of Statping, which has an id and says whether the service is online. */
function isStatpingBody(body: JsonObject): boolean {
  return onlineState(body) !== '' && firstStringOf(body['id'], anyOf(body, TITLE_FIELDS)) !== '';
}

function onlineState(body: JsonObject): string {
  return typeof body['online'] === 'boolean' ? (body['online'] ? 'online' : 'offline') : '';
}
