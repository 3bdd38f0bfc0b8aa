import { MAX_MARKUP_LENGTH } from './markdown-text.ts';
import { clipped, labelledLink, safeLink } from './plain-text.ts';

/**
 * A tag whose name begins with a letter, or an entity. Each match ends before the next `<`, so all matches together
 * take linear time.
 */
const TOKEN = /<(\/?)([a-z][a-z0-9-]*)((?:\s|\/)[^<>]*)?>|&(#x?[0-9a-f]{1,6}|[a-z]{2,6});/gi;
const HREF = /\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"']+))/i;
const MAX_ATTRIBUTES_LENGTH = 4_096;

/**
 * Tags that are removed while their content stays. If a name between `<` and `>` is in none of these sets, it is text
 * that the sender did not escape, and stays.
 */
const INLINE_TAGS = new Set(
  'a abbr b big code del em font i img ins mark s small span strike strong sub sup tg-emoji tg-spoiler tg-time time u'.split(
    ' ',
  ),
);
/** Tags whose content begins and ends with a line break. */
const BLOCK_TAGS = new Set(
  'blockquote details div footer h1 h2 h3 h4 h5 h6 hr li ol p pre summary table tbody tfoot thead tr ul'.split(' '),
);
const CELL_TAGS = new Set(['td', 'th']);

const ENTITIES: Readonly<Record<string, string>> = {
  lt: '<',
  gt: '>',
  amp: '&',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  hellip: '…',
  mdash: '—',
  ndash: '–',
};
const MAX_CODE_POINT = 0x10_ff_ff;

/**
 * Converts HTML with the few tags that chats allow to plain text. The URL of a link follows its label. Line feeds stay.
 */
export function htmlText(html: string, maxLength = MAX_MARKUP_LENGTH): string {
  const text = clipped(html, maxLength);
  return /[<&]/.test(text) ? new HtmlReader().read(text) : text;
}

class HtmlReader {
  readonly #parts: string[] = [];
  /**
   * The link whose label is being read. `labelStartIndex`: the index in `parts` where the label begins. There is one at
   * most, most, since links are not nested.
   */
  #link: { readonly labelStartIndex: number; readonly url: string } | null = null;

  read(html: string): string {
    let previousTokenEnd = 0;
    for (const found of html.matchAll(TOKEN)) {
      this.#add(html.slice(previousTokenEnd, found.index));
      this.#addToken(found);
      previousTokenEnd = found.index + found[0].length;
    }
    this.#add(html.slice(previousTokenEnd));
    this.#closeLink();
    return this.#parts.join('');
  }

  #addToken([token, slash, tag, attributes, entity]: RegExpExecArray): void {
    if (tag === undefined) this.#add(characterOf(entity!) ?? token);
    else if (!this.#addTag(tag.toLowerCase(), slash !== '', attributes ?? '')) this.#add(token);
  }

  /** Adds the text that a tag stands for, such as a line break. False: the tag is unknown, and nothing was added. */
  #addTag(tag: string, isEnd: boolean, attributes: string): boolean {
    if (tag === 'br') this.#add('\n');
    else if (BLOCK_TAGS.has(tag)) this.#beginLine(tag === 'li' && !isEnd ? '- ' : '');
    else if (CELL_TAGS.has(tag)) this.#add(isEnd || this.#isAtLineStart ? '' : ' | ');
    else if (!INLINE_TAGS.has(tag)) return false;
    if (tag !== 'a') return true;
    this.#closeLink();
    if (!isEnd) this.#link = { labelStartIndex: this.#parts.length, url: hrefOf(attributes) };
    return true;
  }

  #closeLink(): void {
    if (this.#link === null) return;
    const label = this.#parts.splice(this.#link.labelStartIndex).join('');
    this.#add(labelledLink(label, this.#link.url));
    this.#link = null;
  }

  #beginLine(beginning: string): void {
    if (!this.#isAtLineStart) this.#add('\n');
    this.#add(beginning);
  }

  get #isAtLineStart(): boolean {
    return this.#parts.at(-1)?.endsWith('\n') ?? true;
  }

  #add(text: string): void {
    if (text !== '') this.#parts.push(text);
  }
}

function hrefOf(attributes: string): string {
  const found = HREF.exec(attributes.slice(0, MAX_ATTRIBUTES_LENGTH));
  const href = found?.[1] ?? found?.[2] ?? found?.[3] ?? '';
  return safeLink(
    href.replace(/&(#x?[0-9a-f]{1,6}|[a-z]{2,6});/gi, (whole, name: string) => characterOf(name) ?? whole),
  );
}

/** The character of an entity such as `amp` or `#38`; null for an unknown entity. */
function characterOf(entity: string): string | null {
  if (!entity.startsWith('#')) return ENTITIES[entity.toLowerCase()] ?? null;
  const isHex = entity[1] === 'x' || entity[1] === 'X';
  const code = Number.parseInt(entity.slice(isHex ? 2 : 1), isHex ? 16 : 10);
  return code > 0 && code <= MAX_CODE_POINT ? String.fromCodePoint(code) : null;
}
