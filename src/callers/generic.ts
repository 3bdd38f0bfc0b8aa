import type { CallerFormat, CallerRequest } from './core/caller-format.ts';
import { moodOfLevel } from './core/levels.ts';
import { card, messageForm, type MessageForm } from './core/message-form.ts';
import { firstStringOf, stringOf, type JsonObject } from './core/values.ts';

const TEXT_FIELDS = ['text', 'message', 'msg', 'body', 'content', 'description', 'summary'] as const;
const TITLE_FIELDS = ['title', 'subject', 'name'] as const;
const LINK_FIELDS = ['url', 'link', 'click'] as const;
const LEVEL_FIELDS = ['status', 'level', 'severity', 'priority', 'type'] as const;

const anyOf = (body: JsonObject, names: readonly string[]): string => firstStringOf(...names.map((name) => body[name]));

/** Any object with the usual names of fields: Home Assistant's `rest`, shoutrrr's JSON, Proxmox, own scripts. */
export const generic: CallerFormat = {
  name: 'generic',
  matches: ({ body }) => TEXT_FIELDS.some((name) => stringOf(body[name]).trim() !== ''),
  read: readGeneric,
};

function readGeneric({ body }: CallerRequest): MessageForm {
  const levels = LEVEL_FIELDS.map((name) => moodOfLevel(stringOf(body[name])));
  return messageForm({
    label: firstStringOf(body['username']) || null,
    iconUrl: firstStringOf(body['icon_url']) || null,
    cards: [
      card({
        title: anyOf(body, TITLE_FIELDS),
        url: anyOf(body, LINK_FIELDS),
        text: anyOf(body, TEXT_FIELDS),
        mood: levels.find((mood) => mood !== null) ?? null,
      }),
    ],
  });
}
