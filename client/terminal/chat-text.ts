import { formatBytes } from '../core/format-bytes.ts';
import { noticeText } from '../core/notice-text.ts';
import { sanitize, toSafeJson } from '../core/safe-text.ts';
import type { Attachment, Actor, Card, Change, Conversation, Message } from '../core/shapes.ts';
import type { PaintMood } from './mood-colours.ts';

/** The emoji that the server puts before the title of a card for its mood. */
const MOOD_EMOJI_PATTERN = /^\p{Extended_Pictographic} /u;
const LINE_BREAK = /\r\n|[\n\r\u2028\u2029\u0085\v\f]/;

/** A value as one line of JSON that is safe on a terminal and reads back as it was. */
export function jsonLine(value: unknown): string {
  return toSafeJson(value);
}

/** The name of a conversation, as the lines of its messages show it. */
export function conversationName({ kind, title, peer }: Pick<Conversation, 'kind' | 'title' | 'peer'>): string {
  return sanitize(kind === 'private' ? `@${peer?.nick ?? title}` : title);
}

/** The context of a line: the time, the conversation's name, and the function that paints moods. */
interface MessageLineContext {
  readonly name: string;
  readonly now: Date;
  readonly paint: PaintMood;
}

/** A change as lines. All lines of a text after the first are indented, so that none looks like a message. */
export function changeLines({ message, notice }: Change, lineContext: MessageLineContext): string[] {
  if (message !== undefined) return messageLines(message, lineContext);
  return notice === undefined
    ? []
    : [`${formatLocalTime(notice.at, lineContext.now)} ${lineContext.name} * ${noticeText(notice)}`];
}

/** A message as lines with all of its text; colours show the moods of its cards. */
export function messageLines(message: Message, { name, now, paint }: MessageLineContext): string[] {
  const {
    seq,
    sender,
    label,
    text,
    deleted,
    attachments = [],
    cards = [],
    edited_at: editedAt,
    sent_at: sentAt,
  } = message;
  const linePrefix = `${formatLocalTime(sentAt, now)} ${name} #${seq} ${senderName(sender, label)}`;
  if (deleted === true) return [`${linePrefix}: (deleted)`];
  const [first = '', ...rest] = paintTitles(text.split(LINE_BREAK).map(sanitize), cards, paint);
  return [
    `${linePrefix}${editedAt === undefined ? '' : ' (edited)'}:${text === '' && attachments.length > 0 ? '' : ` ${first}`}`,
    ...rest.map((line) => `    | ${line}`),
    ...attachments.map(attachmentLine),
  ];
}

/**
 * Paints the titles of cards, with or without the emoji of the mood before them. Where no line is a title, it paints
 * the first line.
 */
function paintTitles(lines: readonly string[], cards: readonly Card[], paint: PaintMood): string[] {
  const moodByTitle = new Map<string, string>();
  for (const { title, mood } of cards)
    if (title !== undefined && mood !== undefined) moodByTitle.set(sanitize(title), mood);
  const moods: (string | undefined)[] = lines.map((line) =>
    line === '' ? undefined : (moodByTitle.get(line) ?? moodByTitle.get(line.replace(MOOD_EMOJI_PATTERN, ''))),
  );
  if (!moods.some((mood) => mood !== undefined)) moods[0] = cards.find(({ mood }) => mood !== undefined)?.mood;
  return lines.map((line, index) => (moods[index] === undefined ? line : paint(moods[index], line)));
}

/** A file, with the id that `klatch chat download` takes. */
function attachmentLine({ id, name, size }: Attachment): string {
  return `    [${sanitize(name)} ${formatBytes(size)}] ${sanitize(id)}`;
}

/** Nicks are unique. Other names (of a bot, a webhook, its label) get a mark, so that none looks like a person. */
function senderName({ nick, name, kind }: Actor, label: string | undefined): string {
  const shownName = sanitize(nick ?? name);
  if (kind === 'user') return shownName;
  const mark = kind === 'webhook' ? 'WEBHOOK' : 'BOT';
  return label === undefined ? `${shownName} [${mark}]` : `${shownName} [${mark} ${sanitize(label)}]`;
}

/** The time of day in the local time zone, with the date where it is not today's. */
function formatLocalTime(iso: string, now: Date): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return '--:--';
  const pad = (value: number): string => String(value).padStart(2, '0');
  const time = `${pad(at.getHours())}:${pad(at.getMinutes())}`;
  const date = (each: Date): string => `${each.getFullYear()}-${pad(each.getMonth() + 1)}-${pad(each.getDate())}`;
  return date(at) === date(now) ? time : `${date(at)} ${time}`;
}

/** A line that says that the messages before this seq were removed; no line if it is null. */
export function historyBeginLines(firstKeptSeqIfReached: number | null): string[] {
  return firstKeptSeqIfReached === null
    ? []
    : [`-- messages before #${firstKeptSeqIfReached} were removed by a retention rule`];
}
