import { holdsInvisible, removeHidden } from '../../model/invisible-text.ts';
import { MOODS, type CardField, type CardLink, type MessageCard } from '../../model/message-card.ts';
import { card, type Card, type MessageForm } from './message-form.ts';
import { momentOf } from './moments.ts';
import { clipped, defusedText, safeLink, storableText } from './plain-text.ts';
import {
  MAX_CARDS,
  MAX_CARD_TEXT_LENGTH,
  MAX_FIELDS,
  MAX_LINKS,
  MAX_SHORT_TEXT_LENGTH,
  trimmedLines,
} from './render-text.ts';

/** The most bytes of all cards of a message together, as JSON in UTF-8. */
export const MAX_CARDS_BYTES = 65_536;

const COLOUR_PATTERN = /^#[0-9a-f]{6}$/;

/**
 * The cards of a message as JSON; null if all of them have only text. The cards contain everything that the message's
 * plain text says, within its bounds and MAX_CARDS_BYTES. So a text before the cards becomes a card too.
 */
export function messageCardsJson(form: MessageForm): string | null {
  const clean = form.hasStrangersText ? (text: string): string => defusedText(visibleText(text)) : visibleText;
  const cards: MessageCard[] = [];
  let cardsBytes = 0;
  // Cards after the first one that does not fit are not processed: a body may have far more bytes than that.
  for (const each of [...textCard(form), ...form.cards].slice(0, MAX_CARDS)) {
    if (cardsBytes > MAX_CARDS_BYTES) break;
    const made = messageCard(each, clean);
    if (Object.keys(made).length === 0) continue;
    cards.push(made);
    cardsBytes += jsonBytes(made);
  }
  return boundedCardsJson(cards);
}

/**
 * The cards as JSON; null if all of them have only text. If they exceed MAX_CARDS_BYTES, the result has the first cards
 * that fit, and the next card with as many fields and links as fit.
 */
export function boundedCardsJson(cards: readonly MessageCard[]): string | null {
  if (!cards.some((each) => Object.keys(each).some((part) => part !== 'text'))) return null;
  const complete = JSON.stringify(cards);
  if (Buffer.byteLength(complete) <= MAX_CARDS_BYTES) return complete;
  const fitting = whileFitting(cards, MAX_CARDS_BYTES);
  const maxBytes = MAX_CARDS_BYTES - jsonBytes(fitting) - ','.length;
  return JSON.stringify([...fitting, ...shortenedCard(cards[fitting.length]!, maxBytes)]);
}

/** As many of the first parts as fit into a JSON list of at most `maxBytes` bytes. */
function whileFitting<Part>(parts: readonly Part[], maxBytes: number): Part[] {
  const fitting: Part[] = [];
  let bytes = jsonBytes([]);
  for (const part of parts) {
    bytes += jsonBytes(part) + (fitting.length === 0 ? 0 : ','.length);
    if (bytes > maxBytes) break;
    fitting.push(part);
  }
  return fitting;
}

const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

/**
 * The card with as many of its fields and links as fit into `maxBytes`; an empty list if its other parts alone are too
 * large.
 */
function shortenedCard({ fields = [], links = [], ...rest }: MessageCard, maxBytes: number): MessageCard[] {
  const maxListBytes = maxBytes - jsonBytes({ ...rest, fields: 0, links: 0 });
  if (maxListBytes < 0) return [];
  const fittingFields = whileFitting(fields, maxListBytes);
  const fittingLinks = whileFitting(links, maxListBytes - jsonBytes(fittingFields));
  return [omitEmpty({ ...rest, fields: fittingFields, links: fittingLinks })];
}

/** A card with the text before the cards; no card if that text is the title or the text of one of them. */
function textCard({ text, cards }: MessageForm): Card[] {
  const beginning = (each: string): string => trimmedLines(clipped(each, MAX_CARD_TEXT_LENGTH));
  const shown = beginning(text);
  const isShownByCard = cards
    .slice(0, MAX_CARDS)
    .some((each) => [beginning(each.title), beginning(each.text)].includes(shown));
  return shown === '' || isShownByCard ? [] : [card({ text: shown })];
}

function messageCard(formCard: Card, clean: (text: string) => string): MessageCard {
  const shown = (text: string, maxLength: number): string => trimmedLines(clean(clipped(text, maxLength)));
  const timeMs = momentOf(formCard.time);
  return omitEmpty({
    title: shown(formCard.title, MAX_SHORT_TEXT_LENGTH),
    url: visibleLink(formCard.url),
    mood: MOODS.find((mood) => mood === formCard.mood),
    color: COLOUR_PATTERN.test(formCard.mood ?? '') ? (formCard.mood ?? undefined) : undefined,
    author: shown(formCard.author, MAX_SHORT_TEXT_LENGTH),
    text: shown(formCard.text, MAX_CARD_TEXT_LENGTH),
    fields: formCard.fields.slice(0, MAX_FIELDS).flatMap(({ name, value, isShort }): CardField[] => {
      const field = { name: shown(name, MAX_SHORT_TEXT_LENGTH), value: shown(value, MAX_CARD_TEXT_LENGTH) };
      return field.name === '' && field.value === '' ? [] : [omitEmpty({ ...field, short: isShort || undefined })];
    }),
    links: formCard.links.slice(0, MAX_LINKS).flatMap(({ label, url }): CardLink[] => {
      const link = { label: shown(label, MAX_SHORT_TEXT_LENGTH), url: visibleLink(url) };
      return link.url === '' ? [] : [omitEmpty(link)];
    }),
    image: visibleLink(formCard.image),
    footer: shown(formCard.footer, MAX_SHORT_TEXT_LENGTH),
    time: timeMs === null ? undefined : new Date(timeMs).toISOString(),
  });
}

/** The text without invisible characters; its line ends stay. */
const visibleText = (text: string): string => removeHidden(storableText(text));

/** The URL of a link; empty if it has invisible characters, with which it may look like another URL. */
function visibleLink(url: string): string {
  const link = safeLink(url);
  return holdsInvisible(link) ? '' : link;
}

/** A copy of an object without undefined values, empty strings and empty lists. */
function omitEmpty<Parts extends object>(parts: Parts): Parts {
  const entries = Object.entries(parts).filter(
    ([, value]) => value !== undefined && value !== '' && !isEmptyList(value),
  );
  return Object.fromEntries(entries) as Parts;
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;
