import type { Field } from './message-form.ts';
import { safeLink } from './plain-text.ts';
import { mrkdwnText, unformattedText } from './slack-mrkdwn.ts';
import { richText } from './slack-rich-text.ts';
import type { LayoutPiece } from './slack-layout.ts';
import { firstStringOf, isObject, objectOf, objectsOf, stringOf, type JsonObject } from './values.ts';

/** The most blocks that are read; Slack itself accepts 50. */
const MAX_BLOCKS = 100;
const MAX_BLOCK_ELEMENTS = 100;
const MAX_TABLE_ROWS = 1_000;
/** The greatest depth of nested containers that is read. Slack itself allows no container in another. */
const MAX_CONTAINER_DEPTH = 3;
const MAX_FIELD_NAME_LENGTH = 100;
const DIVIDER = '———';

type BlockReader = (block: JsonObject, depth: number) => readonly LayoutPiece[];

const READERS: ReadonlyMap<string, BlockReader> = new Map<string, BlockReader>([
  ['header', (block) => pieceOf('title', textOf(block['text']))],
  ['section', sectionPieces],
  ['context', (block) => pieceOf('footer', textsOfElements(block['elements']).join(' · '))],
  ['divider', () => pieceOf('text', DIVIDER)],
  ['image', imagePieces],
  ['actions', (block) => buttonPieces(block['elements'])],
  ['rich_text', (block) => pieceOf('text', richText(block))],
  ['markdown', (block) => pieceOf('text', firstStringOf(block['text']))],
  ['video', videoPieces],
  ['table', tablePieces],
  ['data_table', tablePieces],
  // Blocks that are left out: they ask the reader for input, or name a file that only Slack has.
  ['input', () => []],
  ['file', () => []],
  ['context_actions', () => []],
]);

/**
 * Reads the contents of Slack's Block Kit blocks, in their order. In a block of an unknown kind, reads the fields that
 * usually have texts.
 */
export function blockPieces(value: unknown, depth = 0): LayoutPiece[] {
  const blocks = objectsOf(value, MAX_BLOCKS);
  const pieces = blocks.flatMap((block) => (READERS.get(stringOf(block['type'])) ?? otherBlockPieces)(block, depth));
  const omittedBlockCount = Array.isArray(value) ? value.length - MAX_BLOCKS : 0;
  return omittedBlockCount > 0 ? [...pieces, ...pieceOf('text', `… and ${omittedBlockCount} more`)] : pieces;
}

/** The text of one of Slack's text objects. Some senders write a plain string in its place. */
function textOf(value: unknown): string {
  const object = objectOf(value);
  if (object['type'] === 'rich_text') return richText(object);
  const text = isObject(value) ? stringOf(object['text']) : stringOf(value);
  return object['type'] === 'plain_text' ? unformattedText(text, object['emoji'] !== false) : mrkdwnText(text);
}

/** The texts of a list, without blank ones. Pictures in the list are decoration and left out. */
function textsOfElements(value: unknown): string[] {
  const list = objectsOf(value, MAX_BLOCK_ELEMENTS).filter((element) => element['type'] !== 'image');
  return list.map((element) => textOf(element).trim()).filter((text) => text !== '');
}

function pieceOf(slot: 'title' | 'text' | 'image' | 'footer', text: string): LayoutPiece[] {
  return text.trim() === '' ? [] : [{ slot, text }];
}

function sectionPieces(section: JsonObject): LayoutPiece[] {
  const fields = textsOfElements(section['fields']).map((text): LayoutPiece => ({
    slot: 'field',
    field: fieldOf(text),
  }));
  const accessory = objectOf(section['accessory']);
  const accessoryPieces = accessory['type'] === 'image' ? imageUrlPieces(accessory) : buttonPieces(accessory);
  return [...pieceOf('text', textOf(section['text'])), ...fields, ...accessoryPieces];
}

/**
 * Splits the text of a section's field into name and value. Most senders write `*Name*`, a line feed and the value, or
 * `*Name:* value`.
 */
function fieldOf(text: string): Field {
  const nameEnd = text.startsWith('*') ? text.slice(0, MAX_FIELD_NAME_LENGTH).indexOf('*', 1) : -1;
  const name = text.slice(1, Math.max(nameEnd, 1)).trim();
  const rest = text.slice(nameEnd + 1);
  const isNamed = name !== '' && (name.endsWith(':') || /^:?\s*\n/.test(rest) || rest.startsWith(':'));
  if (!isNamed) return { name: '', value: text, isShort: true };
  return { name: name.replace(/:$/, ''), value: rest.replace(/^:/, '').trim(), isShort: true };
}

/**
 * The links of buttons. A button without a URL is left out: in Slack it sends a request to the program, which Klatch
 * cannot do.
 */
function buttonPieces(value: unknown): LayoutPiece[] {
  return objectsOf(value, MAX_BLOCK_ELEMENTS).flatMap((button): LayoutPiece[] => {
    const url = safeLink(stringOf(button['url']));
    return url === '' ? [] : [{ slot: 'link', link: { label: textOf(button['text']), url } }];
  });
}

function imagePieces(image: JsonObject): LayoutPiece[] {
  const title = textOf(image['title']).trim();
  return [...pieceOf('text', title === '' ? stringOf(image['alt_text']) : title), ...imageUrlPieces(image)];
}

function imageUrlPieces(image: JsonObject): LayoutPiece[] {
  const file = objectOf(image['slack_file']);
  return pieceOf('image', safeLink(firstStringOf(image['image_url'], file['url'])));
}

function videoPieces(video: JsonObject): LayoutPiece[] {
  const label = textOf(video['title']) || stringOf(video['alt_text']);
  const url = safeLink(firstStringOf(video['title_url'], video['video_url']));
  const link: LayoutPiece[] = url === '' ? pieceOf('text', label) : [{ slot: 'link', link: { label, url } }];
  return [...link, ...pieceOf('text', textOf(video['description']))];
}

/** The rows of a table as text, one line for each. A cell may be a plain text, a number or rich text. */
function tablePieces(table: JsonObject): LayoutPiece[] {
  const rows = Array.isArray(table['rows']) ? table['rows'].slice(0, MAX_TABLE_ROWS) : [];
  const lines = rows.map((row) => objectsOf(row, MAX_BLOCK_ELEMENTS).map(cellText).join(' | '));
  return [...pieceOf('text', textOf(table['caption'])), ...pieceOf('text', lines.join('\n'))];
}

function cellText(cell: JsonObject): string {
  const type = stringOf(cell['type']);
  const text = type.startsWith('rich_text') ? richText(type === 'rich_text' ? cell : { elements: [cell] }) : '';
  return (text || firstStringOf(cell['text'], cell['value'])).trim().replaceAll('\n', ' ');
}

/** Reads a card, container, plan or alert, and any kind of block that Klatch does not know. */
function otherBlockPieces(block: JsonObject, depth: number): LayoutPiece[] {
  const texts = ['rich_text_title', 'title', 'subtitle', 'text', 'body', 'details', 'output']
    .filter((name) => name !== 'title' || block['rich_text_title'] === undefined)
    .flatMap((name) => pieceOf('text', textOf(block[name])));
  const childKeys = ['child_blocks', 'tasks', ...(block['type'] === 'carousel' ? ['elements'] : [])];
  return [
    ...texts,
    ...imageUrlPieces(objectOf(block['hero_image'])),
    ...buttonPieces(block['actions']),
    ...(depth < MAX_CONTAINER_DEPTH ? childKeys.flatMap((name) => blockPieces(block[name], depth + 1)) : []),
  ];
}
