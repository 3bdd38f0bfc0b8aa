import type { CallerFormat, CallerRequest } from './core/caller-format.ts';
import { card, messageForm, type MessageForm, type Mood } from './core/message-form.ts';
import { firstStringOf, stringOf, type JsonObject } from './core/values.ts';

const TEXT_FIELDS = ['text', 'message', 'msg', 'body', 'content', 'description', 'summary'] as const;
const TITLE_FIELDS = ['title', 'subject', 'name'] as const;
const LINK_FIELDS = ['url', 'link', 'click'] as const;
const LEVEL_FIELDS = ['status', 'level', 'severity', 'priority', 'type'] as const;

const MOOD_BY_LEVEL: ReadonlyMap<string, Mood> = new Map<string, Mood>([
  ...['ok', 'up', 'good', 'success', 'resolved', 'recovery', 'recovered'].map((level) => [level, 'good'] as const),
  ...['info', 'information', 'notice'].map((level) => [level, 'info'] as const),
  ...['warn', 'warning', 'average', 'medium'].map((level) => [level, 'warning'] as const),
  ...['error', 'critical', 'crit', 'alert', 'emergency', 'fatal', 'failure', 'failed', 'down', 'firing', 'high'].map(
    (level) => [level, 'danger'] as const,
  ),
]);

const anyOf = (body: JsonObject, names: readonly string[]): string => firstStringOf(...names.map((name) => body[name]));

/** Null for a level that is not known to mean anything. */
export function moodOfLevel(level: string): Mood | null {
  return MOOD_BY_LEVEL.get(level.toLowerCase()) ?? null;
}

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
