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
 * Any object with the usual names of fields: Home Assistant's `rest`, shoutrrr's JSON, Proxmox, ElastAlert, own
 * scripts. Statping, Sonarr and its relatives lack these fields and are recognized by other ones.
 */
export const generic: CallerFormat = {
  name: 'generic',
  matches: ({ body }) => anyOf(body, TEXT_FIELDS) !== '' || isMediaEvent(body) || isOnlineState(body),
  read: readGeneric,
};

function readGeneric({ body }: CallerRequest): MessageForm {
  return messageForm({
    label: anyOf(body, LABEL_FIELDS) || null,
    iconUrl: firstStringOf(body['icon_url']) || null,
    cards: [cardOf(body)],
  });
}

/** The card of a body in this server's own form: a `text`, with `title`, `url` and `level` if it has them. */
export function ownCard({ text, title, url, level }: JsonObject): Card {
  const mood = moodOfLevel(stringOf(level));
  return card({ title: stringOf(title), url: stringOf(url), mood, text: stringOf(text) });
}

function cardOf(body: JsonObject): Card {
  if (isMediaEvent(body)) return mediaEventCard(body);
  const levels = LEVEL_FIELDS.map((name) => moodOfLevel(stringOf(body[name])));
  const [title, text, state] = [anyOf(body, TITLE_FIELDS), anyOf(body, TEXT_FIELDS), onlineState(body)];
  const stateTitle = `${firstStringOf(title, `Service ${stringOf(body['id'])}`)} is ${state}`;
  return card({
    title: text === '' && state !== '' ? stateTitle : title,
    url: anyOf(body, LINK_FIELDS),
    text,
    mood: levels.find((mood) => mood !== null) ?? moodOfLevel(state),
    image: anyOf(body, IMAGE_FIELDS),
  });
}

/** Whether the body is the default one of Statping: an id, and whether the service answers. */
function isOnlineState(body: JsonObject): boolean {
  return onlineState(body) !== '' && firstStringOf(body['id'], anyOf(body, TITLE_FIELDS)) !== '';
}

function onlineState(body: JsonObject): string {
  return typeof body['online'] === 'boolean' ? (body['online'] ? 'online' : 'offline') : '';
}
