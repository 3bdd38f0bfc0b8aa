import { makeAlertUpdate } from './core/alert-update.ts';
import type { CallerFormat, CallerRequest } from './core/caller-format.ts';
import { emojiOf } from './core/emoji-shortcodes.ts';
import { headerText } from './core/header-text.ts';
import { card, messageForm, type Link, type MessageForm, type Mood } from './core/message-form.ts';
import { parseNtfyActions } from './core/ntfy-actions.ts';
import { MAX_LINKS, moodUnlessShown } from './core/render-text.ts';
import { firstStringOf, isObject, objectsOf, stringOf, type JsonObject } from './core/values.ts';

/** The names that each parameter may have, in the headers and in the query. */
const PARAMETER_NAMES = {
  title: ['x-title', 'title', 't'],
  message: ['x-message', 'message', 'm'],
  priority: ['x-priority', 'priority', 'prio', 'p'],
  tags: ['x-tags', 'tags', 'tag', 'ta'],
  click: ['x-click', 'click'],
  icon: ['x-icon', 'icon'],
  actions: ['x-actions', 'actions', 'action'],
  attach: ['x-attach', 'attach', 'a'],
  filename: ['x-filename', 'filename', 'file', 'f'],
  sequence_id: ['x-sequence-id', 'sequence-id', 'sid'],
} as const;
type Parameter = keyof typeof PARAMETER_NAMES;

/** Headers that only programs for ntfy send. `Priority` is not among them, since browsers and proxies send that too. */
const NTFY_ONLY_HEADERS = [
  ...PARAMETER_NAMES.title.slice(0, 2),
  PARAMETER_NAMES.message[0],
  PARAMETER_NAMES.priority[0],
  ...PARAMETER_NAMES.tags.slice(0, 2),
  ...PARAMETER_NAMES.click,
  ...PARAMETER_NAMES.actions.slice(0, 2),
  PARAMETER_NAMES.attach[0],
  ...PARAMETER_NAMES.sequence_id.slice(0, 2),
];

/**
 * A message to ntfy as JSON. Parts that the JSON object lacks may be in headers: Apprise sends priority, tags and
 * actions there.
 */
export const ntfy: CallerFormat = {
  name: 'ntfy',
  matches: ({ body }) =>
    typeof body['topic'] === 'string' && (typeof body['message'] === 'string' || typeof body['title'] === 'string'),
  read: (request) => readMessage(request, stringOf(request.body['message'])),
};

/** True if the headers say that a request with a plain-text body, or without a body, is a message to ntfy. */
export function hasNtfyHeaders(headers: CallerRequest['headers']): boolean {
  return NTFY_ONLY_HEADERS.some((name) => (headers[name] ?? '').trim() !== '');
}

/** Reads a request to ntfy with a plain-text body. If the body is empty, a header or the query has the message. */
export function readNtfyText(request: Pick<CallerRequest, 'headers' | 'query'>, text: string): MessageForm {
  return readMessage({ ...request, body: {} }, text);
}

function readMessage(request: CallerRequest, text: string): MessageForm {
  const valueOf = (name: Parameter): string => firstStringOf(request.body[name], parameterOf(request, name));
  const message = text.trim() === '' ? parameterOf(request, 'message').replaceAll('\\n', '\n') : text.trim();
  const tags = readTags(request.body['tags'], () => parameterOf(request, 'tags'));
  const tagEmoji = tags
    .map((tag) => emojiOf(tag.toLowerCase()))
    .filter((each) => each !== null)
    .join(' ');
  const title = valueOf('title').trim();
  const plainTags = tags.filter((tag) => emojiOf(tag.toLowerCase()) === null);
  const attachmentLink = { label: firstStringOf(valueOf('filename'), 'Attachment'), url: valueOf('attach') };
  return messageForm({
    iconUrl: valueOf('icon') || null,
    cards: [
      card({
        title: title === '' ? '' : prefixed(tagEmoji, title),
        url: valueOf('click'),
        mood: moodUnlessShown(moodOfPriority(valueOf('priority')), message),
        text: title === '' ? prefixed(tagEmoji, message) : message,
        fields: plainTags.length === 0 ? [] : [{ name: 'Tags', value: plainTags.join(', '), isShort: true }],
        links: [...readActions(request.body['actions'], () => parameterOf(request, 'actions')), attachmentLink].filter(
          ({ url }) => url !== '',
        ),
      }),
    ],
    // ntfy itself shows the word "triggered" for a message without a text.
    fallback: 'triggered',
    alert: makeAlertUpdate(valueOf('sequence_id'), 'firing', [], { isReplacement: true }),
  });
}

const prefixed = (emoji: string, text: string): string => (emoji === '' ? text : `${emoji} ${text}`.trim());

function parameterOf({ headers, query }: CallerRequest, parameter: Parameter): string {
  const names: readonly string[] = PARAMETER_NAMES[parameter];
  for (const name of names) {
    const value = headerText(headers[name] ?? '').trim();
    // A header `Priority` with a value such as `u=1` is that of RFC 9218, and not ntfy's.
    if (value !== '' && !(name === 'priority' && value.startsWith('u='))) return value;
  }
  return firstStringOf(...names.map((name) => query.get(name)));
}

const MOOD_BY_PRIORITY: ReadonlyMap<string, Mood> = new Map<string, Mood>([
  ['4', 'warning'],
  ['high', 'warning'],
  ['5', 'danger'],
  ['max', 'danger'],
  ['urgent', 'danger'],
]);
const moodOfPriority = (priority: string): Mood | null => MOOD_BY_PRIORITY.get(priority.trim().toLowerCase()) ?? null;

const MAX_TAGS = 20;
const MAX_TAGS_LENGTH = 2_000;

/** Reads the tags, which are a list, or a comma-separated text as in the header. */
function readTags(value: unknown, fromHeader: () => string): string[] {
  const list = Array.isArray(value) ? value.slice(0, MAX_TAGS).map(stringOf) : [];
  const tags = list.length > 0 ? list : (stringOf(value) || fromHeader()).slice(0, MAX_TAGS_LENGTH).split(',');
  return tags
    .slice(0, MAX_TAGS)
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
}

const MAX_ACTIONS_LENGTH = 16_384;

/**
 * The links of actions that open a URL. Other actions are left out: they send an HTTP request or an Android intent from
 * the reader's device.
 */
function readActions(value: unknown, fromHeader: () => string): Link[] {
  const actions =
    Array.isArray(value) || isObject(value)
      ? objectsOf(value, MAX_LINKS)
      : actionsOf((stringOf(value) || fromHeader()).slice(0, MAX_ACTIONS_LENGTH));
  return actions
    .filter(({ action }) => stringOf(action).toLowerCase() === 'view')
    .map(({ label, url }) => ({ label: stringOf(label), url: stringOf(url) }));
}

function actionsOf(text: string): readonly JsonObject[] {
  if (!text.startsWith('[')) return parseNtfyActions(text);
  try {
    return objectsOf(JSON.parse(text), MAX_LINKS);
  } catch {
    return [];
  }
}
