import { emojiOf } from './emoji-shortcodes.ts';
import { defusedText, labelledLink } from './plain-text.ts';
import { firstStringOf, isoTime, numberOf, objectOf, objectsOf, stringOf, type JsonObject } from './values.ts';

/** The most elements of one list that are read; a message of Slack has far fewer. */
const MAX_LIST_ELEMENTS = 1_000;
const MAX_INDENT = 8;

/**
 * Converts a block `rich_text` to plain text: one line for each entry of a list, quotes with `>` and code with
 * backticks.
 */
export function richText(block: JsonObject): string {
  return objectsOf(block['elements'], MAX_LIST_ELEMENTS)
    .map(blockElementText)
    .filter((part) => part !== '')
    .join('\n');
}

function blockElementText(blockElement: JsonObject): string {
  switch (blockElement['type']) {
    case 'rich_text_list':
      return listText(blockElement);
    case 'rich_text_quote':
      return inlineText(blockElement).trimEnd().replace(/^/gm, '> ');
    case 'rich_text_preformatted':
      return `\`\`\`\n${inlineText(blockElement).trimEnd()}\n\`\`\``;
    default:
      return inlineText(blockElement).trimEnd();
  }
}

function listText(list: JsonObject): string {
  const indent = '  '.repeat(Math.min(Math.max(Math.trunc(numberOf(list['indent']) ?? 0), 0), MAX_INDENT));
  const firstNumber = (numberOf(list['offset']) ?? 0) + 1;
  return objectsOf(list['elements'], MAX_LIST_ELEMENTS)
    .map(
      (entry, index) =>
        `${indent}${list['style'] === 'ordered' ? `${firstNumber + index}.` : '•'} ${inlineText(entry)}`,
    )
    .join('\n');
}

function inlineText(section: JsonObject): string {
  return objectsOf(section['elements'], MAX_LIST_ELEMENTS).map(elementText).join('');
}

/** The plain text of an element. Unlike Slack's markup, rich text has no entities to decode. Emphasis is dropped. */
function elementText(element: JsonObject): string {
  const text = stringOf(element['text']);
  switch (element['type']) {
    case 'text':
      return objectOf(element['style'])['code'] === true ? `\`${text}\`` : text;
    case 'link':
      return labelledLink(text, stringOf(element['url']));
    case 'emoji':
      return emojiText(element);
    case 'user':
      return defusedText(`@${stringOf(element['user_id'])}`);
    case 'usergroup':
      return defusedText(`@${stringOf(element['usergroup_id'])}`);
    case 'broadcast':
      return defusedText(`@${stringOf(element['range'])}`);
    case 'channel':
      return `#${stringOf(element['channel_id'])}`;
    case 'date':
      return firstStringOf(element['fallback']) || isoTime((numberOf(element['timestamp']) ?? NaN) * 1_000);
    case 'color':
      return stringOf(element['value']);
    default:
      return text;
  }
}

const CODE_POINTS = /^[0-9a-f]{2,6}(?:-[0-9a-f]{2,6}){0,9}$/i;
const MAX_CODE_POINT = 0x10ffff;

/**
 * The emoji of an element. If its name is unknown, it is made from the element's code points, such as
 * `1f469-200d-1f692`.
 */
function emojiText(element: JsonObject): string {
  const name = stringOf(element['name']);
  const knownEmoji = emojiOf(name);
  const unicode = stringOf(element['unicode']);
  if (knownEmoji !== null || !CODE_POINTS.test(unicode)) return knownEmoji ?? `:${name}:`;
  const points = unicode.split('-').map((hex) => Number.parseInt(hex, 16));
  return points.every((point) => point <= MAX_CODE_POINT) ? String.fromCodePoint(...points) : `:${name}:`;
}
