import { isFromGitHost, type CallerFormat, type CallerRequest } from './core/caller-format.ts';
import { CardSequence } from './core/card-sequence.ts';
import { colourOfNumber } from './core/colours.ts';
import { markdownText } from './core/markdown-text.ts';
import { card, messageForm, type Card, type MessageForm } from './core/message-form.ts';
import { defusedText, safeLink } from './core/plain-text.ts';
import { firstStringOf, isObject, isoTime, isoTimeOf, numberOf, objectOf, objectsOf, stringOf } from './core/values.ts';
import type { JsonObject } from './core/values.ts';

const MAX_EMBEDS = 100;
const MAX_FIELDS_READ = 100;
const MAX_COMPONENTS = 500;
const MAX_COMPONENT_DEPTH = 10;
/**
 * A body with one of these fields is not in Discord's format, even if it has the field `content`: another program has
 * such a field too.
 */
const FOREIGN_FIELDS = ['text', 'title', 'subject', 'message', 'msg', 'body'] as const;

/**
 * Discord's "Execute webhook". Alertmanager, Grafana, Uptime Kuma, Gitea, Zabbix, Sonarr, discord.js and many more send
 * it.
 */
export const discord: CallerFormat = {
  name: 'discord',
  matches: ({ body }) =>
    Array.isArray(body['embeds']) ||
    (typeof body['content'] === 'string' && !FOREIGN_FIELDS.some((name) => typeof body[name] === 'string')) ||
    (Array.isArray(body['components']) && typeof body['flags'] === 'number') ||
    (isObject(body['poll']) && isObject(body['poll']['question'])),
  read: readDiscord,
};

function readDiscord(request: CallerRequest): MessageForm {
  const { body } = request;
  return messageForm({
    senderLabel: firstStringOf(body['username']) || null,
    iconUrl: firstStringOf(body['avatar_url']) || null,
    text: plain(body['content']),
    cards: [
      ...objectsOf(body['embeds'], MAX_EMBEDS).map(readEmbed),
      ...readPoll(objectOf(body['poll'])),
      ...readComponents(body['components']),
    ],
    hasStrangersText: isFromGitHost(request) || mentionsNobody(body['allowed_mentions']),
  });
}

/** True if `allowed_mentions` says that the text mentions no user. Senders must say that for text that others wrote. */
function mentionsNobody(allowedMentions: unknown): boolean {
  if (!isObject(allowedMentions)) return false;
  const { parse, users } = allowedMentions;
  return !(Array.isArray(parse) && parse.includes('users')) && !(Array.isArray(users) && users.length > 0);
}

function readEmbed(embed: JsonObject): Card {
  return card({
    title: plain(embed['title']),
    url: stringOf(embed['url']),
    mood: colourOfNumber(embed['color']),
    author: stringOf(objectOf(embed['author'])['name']),
    text: plain(embed['description']),
    fields: objectsOf(embed['fields'], MAX_FIELDS_READ).map((field) => ({
      name: plain(field['name']),
      value: plain(field['value']),
      isShort: stringOf(field['inline']).toLowerCase() === 'true',
    })),
    image: firstStringOf(objectOf(embed['image'])['url'], objectOf(embed['thumbnail'])['url']),
    footer: stringOf(objectOf(embed['footer'])['text']),
    time: isoTimeOf(embed['timestamp']),
  });
}

function readPoll(poll: JsonObject): readonly Card[] {
  const answers = objectsOf(poll['answers'], MAX_FIELDS_READ).map((answer) =>
    plain(objectOf(answer['poll_media'])['text']),
  );
  const text = answers.filter((answer) => answer !== '').map((answer) => `- ${answer}`);
  const title = plain(objectOf(poll['question'])['text']);
  return title === '' ? [] : [card({ title, text: text.join('\n') })];
}

/** Reads Discord's message components into cards. Of the buttons, only those that open a URL are read. */
function readComponents(value: unknown): readonly Card[] {
  const sequence = new CardSequence();
  let componentsLeft = MAX_COMPONENTS;
  const visit = (components: unknown, depth: number): void => {
    for (const component of objectsOf(components, MAX_COMPONENTS)) {
      if (depth > MAX_COMPONENT_DEPTH || componentsLeft <= 0) return;
      componentsLeft -= 1;
      sequence.addText(plain(component['content']));
      sequence.addLink(stringOf(component['label']), safeLink(stringOf(component['url'])));
      sequence.addImage('', safeLink(stringOf(objectOf(component['media'])['url'])));
      for (const key of ['components', 'accessory', 'items']) visit(component[key], depth + 1);
    }
  };
  visit(value, 0);
  return sequence.cards();
}

const plain = (value: unknown): string => markdownText(stringOf(value), { angleText: angleBracketText });

const MENTION = /^@[!&]?(\d{1,20})$/;
const CHANNEL = /^#(\d{1,20})$/;
const EMOJI = /^a?(:\w{1,32}:)\d{1,20}$/;
const MOMENT = /^t:(-?\d{1,13})(?::[a-zA-Z])?$/;
const COMMAND = /^(\/[^:]{1,100}):\d{1,20}$/;

/**
 * The text for Discord's `<content>`. An id is of no use to a reader, but shows that there was a mention. It mentions
 * nobody, since no member has an id as a nick.
 */
function angleBracketText(content: string): string | null {
  const mention = MENTION.exec(content)?.[1];
  if (mention !== undefined) return defusedText(`@${mention}`);
  const channel = CHANNEL.exec(content)?.[1];
  if (channel !== undefined) return `#${channel}`;
  const moment = MOMENT.exec(content)?.[1];
  const name = EMOJI.exec(content)?.[1] ?? COMMAND.exec(content)?.[1];
  const found = moment === undefined ? (name ?? safeLink(content)) : isoTime(numberOf(moment)! * 1_000);
  return found === '' ? null : found;
}
