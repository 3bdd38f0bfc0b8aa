import { MOODS } from '../../model/message-card.ts';
import { card, type Card, type Field, type Link, type Mood } from './message-form.ts';
import { labelledLink, safeLink } from './plain-text.ts';
import { blockPieces } from './slack-blocks.ts';
import { layoutCard } from './slack-layout.ts';
import { mrkdwnText } from './slack-mrkdwn.ts';
import { firstStringOf, isoTime, numberOf, objectOf, objectsOf, stringOf, type JsonObject } from './values.ts';

/** The most attachments, fields or buttons that are read. Fewer are shown, and the text says how many are left out. */
const MAX_ENTRIES_READ = 100;
const HEX_COLOUR = /^#?([0-9a-f]{3}|[0-9a-f]{6})$/i;

/**
 * Colours whose meaning is known:
 * - the present and the earlier colours of Slack for good, warning and danger,
 * - the two colours of Uptime Kuma's Slack type,
 * - Grafana's colour for firing.
 *
 * All others count as decoration.
 */
const MOOD_BY_COLOUR: ReadonlyMap<string, Mood> = new Map<string, Mood>([
  ['2eb886', 'good'],
  ['36a64f', 'good'],
  ['daa038', 'warning'],
  ['a30200', 'danger'],
  ['d00000', 'danger'],
  ['e01e5a', 'danger'],
  ['d63232', 'danger'],
]);

/** An attachment in the format that Slack had before its blocks, and that Mattermost and Rocket.Chat still have. */
export interface Attachment {
  readonly card: Card;
  /** The text before the card. */
  readonly pretext: string;
  readonly fallback: string;
  /** True if the card's content comes from blocks in the attachment. */
  readonly hasBlocks: boolean;
}

export function readAttachments(value: unknown): Attachment[] {
  return objectsOf(value, MAX_ENTRIES_READ).map((attachment) => {
    const pieces = blockPieces(attachment['blocks']);
    const attachmentCard = readAttachmentCard(attachment);
    return {
      card: pieces.length === 0 ? attachmentCard : merged(attachmentCard, layoutCard(pieces)),
      pretext: textOf(attachment['pretext']),
      fallback: textOf(attachment['fallback']),
      hasBlocks: pieces.length > 0,
    };
  });
}

function readAttachmentCard(attachment: JsonObject): Card {
  const url = stringOf(attachment['title_link']);
  const author = textOf(attachment['author_name']);
  return card({
    title: textOf(attachment['title']),
    url,
    mood: moodOf(stringOf(attachment['color'])),
    author: url === '' ? labelledLink(author, safeLink(stringOf(attachment['author_link']))) : author,
    text: textOf(attachment['text']),
    fields: objectsOf(attachment['fields'], MAX_ENTRIES_READ).map(fieldOf),
    links: linksOf(attachment),
    image: stringOf(attachment['image_url']),
    footer: textOf(attachment['footer']),
    time: timeOf(attachment['ts']),
  });
}

const textOf = (value: unknown): string => mrkdwnText(stringOf(value));

/** Reads a field of an attachment. Some senders write its `short` as a string. */
function fieldOf(field: JsonObject): Field {
  const short = stringOf(field['short']).toLowerCase();
  return {
    name: textOf(field['title']),
    value: textOf(field['value']),
    isShort: short === 'true' || short === '1',
  };
}

/** The links of an attachment: buttons that open a URL, and the URLs of Rocket.Chat's audio and video. */
function linksOf(attachment: JsonObject): Link[] {
  const buttons = objectsOf(attachment['actions'], MAX_ENTRIES_READ).map((action) => ({
    label: textOf(firstStringOf(action['text'], action['name'])),
    url: safeLink(stringOf(action['url'])),
  }));
  const media = ['audio_url', 'video_url'].map((name) => ({ label: '', url: safeLink(stringOf(attachment[name])) }));
  return [...buttons, ...media].filter((link) => link.url !== '');
}

function moodOf(colour: string): Mood | null {
  const name = MOODS.find((mood) => mood === colour.toLowerCase());
  const hex = HEX_COLOUR.exec(colour.trim())?.[1]?.toLowerCase();
  if (name !== undefined || hex === undefined) return name ?? null;
  const full = hex.length === 3 ? hex.replace(/./g, '$&$&') : hex;
  return MOOD_BY_COLOUR.get(full) ?? `#${full}`;
}

/** Converts a time to ISO 8601. Slack sends Unix seconds, as a number or a string; Rocket.Chat sends ISO 8601. */
function timeOf(value: unknown): string {
  const seconds = numberOf(value);
  return isoTime(seconds === null ? Date.parse(stringOf(value)) : seconds * 1_000);
}

/** Merges the card of an attachment's blocks with the attachment's own fields, such as its colour. */
function merged(attachmentCard: Card, blocksCard: Card): Card {
  const title = attachmentCard.title === '' ? blocksCard.title : attachmentCard.title;
  const titleInText = attachmentCard.title === blocksCard.title || attachmentCard.title === '' ? '' : blocksCard.title;
  return card({
    ...attachmentCard,
    title,
    text: [attachmentCard.text, titleInText, blocksCard.text].filter((text) => text !== '').join('\n'),
    fields: [...attachmentCard.fields, ...blocksCard.fields],
    links: [...blocksCard.links, ...attachmentCard.links],
    image: blocksCard.image === '' ? attachmentCard.image : blocksCard.image,
    footer: [blocksCard.footer, attachmentCard.footer].filter((text) => text !== '').join(' · '),
  });
}

/** A list of attachments or blocks. HTTP forms and Argo CD have the list as JSON in a string. */
export function parseListIfString(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return null;
  }
}

/** The attachments in a body. For Mattermost they may be in the object `props`. */
export const attachmentsIn = (body: JsonObject): unknown =>
  parseListIfString(body['attachments'] ?? objectOf(body['props'])['attachments']);
