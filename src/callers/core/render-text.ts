import type { Card, Field, MessageForm, Mood } from './message-form.ts';
import { clipped, defusedText, safeLink, storableText } from './plain-text.ts';

export const MAX_CARDS = 10;
export const MAX_FIELDS = 25;
export const MAX_LINKS = 10;
export const MAX_CARD_TEXT_LENGTH = 4_000;
export const MAX_SHORT_TEXT_LENGTH = 500;
export const MAX_TEXT_LENGTH = 40_000;

const MARKS: Readonly<Record<string, string>> = { good: '🟢', info: '🔵', warning: '🟠', danger: '🔴' };
/** The fence of a block of code. Clients recognize it only at the start of a line. */
const CODE_FENCE = '```';
const EMOJI_PATTERN = /\p{Extended_Pictographic}/u;

/** The emoji for a mood; empty for null, and for a colour of the sender's own, whose meaning only the sender knows. */
export function emojiOfMood(mood: Mood | null): string {
  return mood === null ? '' : (MARKS[mood] ?? '');
}

/** The mood; null if the first line of the text has an emoji, which shows the mood already. */
export function moodUnlessShown(mood: Mood | null, text: string): Mood | null {
  const beginning = text.slice(0, MAX_SHORT_TEXT_LENGTH);
  const end = beginning.indexOf('\n');
  return EMOJI_PATTERN.test(end === -1 ? beginning : beginning.slice(0, end)) ? null : mood;
}

/**
 * The complete text of a message with its cards, for clients that draw no cards. Empty if the form has no content.
 * Takes time in proportion to the returned text, however much the form contains.
 */
export function renderText(form: MessageForm, maxLength = MAX_TEXT_LENGTH): string {
  const text = trimmedLines(clipped(form.text, MAX_TEXT_LENGTH));
  const cards = form.cards.slice(0, MAX_CARDS).map((card) => renderCard(card, text));
  const shown = cards.filter((each) => each !== '');
  const more = remainderLine(form.cards.length, MAX_CARDS);
  const body = joined('\n', [text, joined('\n\n', [...shown, more])]);
  const complete = body === '' ? trimmedLines(form.fallback) : body;
  const storable = storableText(form.hasStrangersText ? defusedText(complete) : complete);
  return clipped(storable, Math.min(maxLength, MAX_TEXT_LENGTH));
}

/**
 * The text of a card. Leaves out a title or text that is equal to `messageText`, the message's text before its cards.
 */
function renderCard(card: Card, messageText: string): string {
  const title = unlessRepeated(trimmedLines(clipped(card.title, MAX_SHORT_TEXT_LENGTH)), messageText);
  const url = safeLink(card.url);
  const lines = [
    title,
    url === title ? '' : url,
    card.author === card.title ? '' : trimmedLines(clipped(card.author, MAX_SHORT_TEXT_LENGTH)),
    withoutFirstLine(unlessRepeated(trimmedLines(clipped(card.text, MAX_CARD_TEXT_LENGTH)), messageText), title),
    ...fieldLines(card.fields),
    ...card.links.slice(0, MAX_LINKS).map(({ label, url: target }) => linkLine(label, safeLink(target))),
    remainderLine(card.links.length, MAX_LINKS),
    safeLink(card.image),
    trimmedLines(clipped(card.footer, MAX_SHORT_TEXT_LENGTH)),
  ];
  return withMoodEmoji(joined('\n', lines), card.mood);
}

function unlessRepeated(text: string, shown: string): string {
  return text === shown ? '' : text;
}

/** Removes the first line of a text if it is `line`: some programs repeat the title there. */
function withoutFirstLine(text: string, line: string): string {
  return line !== '' && `${text}\n`.startsWith(`${line}\n`) ? text.slice(line.length).trimStart() : text;
}

function withMoodEmoji(text: string, mood: Mood | null): string {
  const mark = emojiOfMood(moodUnlessShown(mood, text));
  return mark === '' || text === '' ? text : `${mark} ${text}`;
}

/** The fields as lines, one for each field; successive short fields share a line. */
export function fieldLines(fields: readonly Field[]): string[] {
  const lines: string[] = [];
  let canExtendLastLine = false;
  for (const field of fields.slice(0, MAX_FIELDS)) {
    const text = fieldText(field);
    if (text === '') continue;
    const isShort = field.isShort && !text.includes('\n');
    if (isShort && canExtendLastLine) lines.push(`${lines.pop()!} · ${text}`);
    else lines.push(text);
    canExtendLastLine = isShort;
  }
  return [...lines, remainderLine(fields.length, MAX_FIELDS)];
}

function fieldText({ name, value }: Field): string {
  const [left, right] = [
    trimmedLines(clipped(name, MAX_SHORT_TEXT_LENGTH)),
    trimmedLines(clipped(value, MAX_CARD_TEXT_LENGTH)),
  ];
  if (left === '' || right === '') return left === '' ? right : left;
  const separator = right.startsWith(CODE_FENCE) && right.includes('\n') ? '\n' : ' ';
  return `${left}${left.endsWith(':') ? '' : ':'}${separator}${right}`;
}

export function linkLine(label: string, url: string): string {
  const text = trimmedLines(clipped(label, MAX_SHORT_TEXT_LENGTH));
  if (url === '') return '';
  return text === '' || text === url ? url : `${text}: ${url}`;
}

function remainderLine(count: number, max: number): string {
  return count > max ? `… and ${count - max} more` : '';
}

/** Trims a text, and reduces several successive empty lines to one. */
export function trimmedLines(text: string): string {
  return text.trim().replace(/\n{3,}/g, '\n\n');
}

function joined(separator: string, parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(separator);
}
