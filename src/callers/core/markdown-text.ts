import { clipped, labelledLink, safeLink } from './plain-text.ts';

/** The rules in which the Markdown of one program differs from that of others. */
interface MarkdownRules {
  /** Returns the text that replaces `<content>`; null leaves `<content>` as it is. */
  readonly angleText?: (content: string) => string | null;
  /** Characters that a backslash escapes; the backslash is dropped. Without this rule, the backslash stays. */
  readonly escapable?: RegExp;
}

/** The most characters of Markdown that are read. A card shows fewer. */
export const MAX_MARKUP_LENGTH = 8_000;
const MAX_TARGET_LENGTH = 2_048;
const MAX_FENCE_LENGTH = 3;
const TITLE_AND_END = /\s+"[^"\n]{0,200}"\)/y;
const BACKTICKS = /`+/y;
const ANGLE = /<([^<>\n]{1,2048})>/y;

/**
 * Converts Markdown to plain text: `[label](address)` becomes `label (address)`. All other marks and code stay as they
 * were typed. Takes one pass, in linear time.
 */
export function markdownText(markdown: string, rules: MarkdownRules = {}, maxLength = MAX_MARKUP_LENGTH): string {
  const text = clipped(markdown, maxLength);
  const special = specialMarks(text, rules);
  return special === null ? text : new MarkdownReader(text, rules).read(special);
}

/** A pattern for those marks that can matter in this text; null: the text has no mark that would change it. */
function specialMarks(text: string, { angleText, escapable }: MarkdownRules): RegExp | null {
  const hasLinks = text.includes('](');
  const hasAngles = angleText !== undefined && text.includes('<');
  const hasEscapes = escapable !== undefined && text.includes('\\');
  if (!hasLinks && !hasAngles && !hasEscapes) return null;
  return new RegExp(`[\\\\\`${hasLinks ? '[\\]' : ''}${hasAngles ? '<' : ''}]`, 'g');
}

/** Removes the asterisks around a title that is bold as a whole: titles are bold anyway. */
export function withoutEmphasis(title: string): string {
  return /^\*\*([^*]+)\*\*$/.exec(title.trim())?.[1] ?? title;
}

class MarkdownReader {
  readonly #text: string;
  readonly #rules: MarkdownRules;
  readonly #parts: string[] = [];
  /** The indexes in `parts` of the opening brackets with which a link may begin. */
  #openings: number[] = [];
  /**
   * Lengths of opening backtick fences for which the rest of the text has no closing fence. The text is not searched
   * for them again.
   */
  readonly #unclosed = new Set<number>();
  /**
   * The position at which the last search for the end of a link's address failed. An address that begins before this
   * position has no end either, and is not searched.
   */
  #deadEnd = 0;

  constructor(text: string, rules: MarkdownRules) {
    this.#text = text;
    this.#rules = rules;
  }

  read(special: RegExp): string {
    let end = 0;
    for (let found = special.exec(this.#text); found !== null; found = special.exec(this.#text)) {
      this.#parts.push(this.#text.slice(end, found.index));
      end = this.#readMark(found[0], found.index);
      special.lastIndex = end;
    }
    this.#parts.push(this.#text.slice(end));
    return this.#parts.join('');
  }

  /** Reads the mark at a position, and returns the position after what was read. */
  #readMark(mark: string, at: number): number {
    if (mark === '\\') return this.#readEscape(at);
    if (mark === '`') return this.#readCode(at);
    if (mark === '<') return this.#readAngle(at);
    if (mark === ']') return this.#readLink(at);
    this.#openings.push(this.#parts.length);
    return this.#keep(at, 1);
  }

  #keep(at: number, length: number): number {
    this.#parts.push(this.#text.slice(at, at + length));
    return at + length;
  }

  #readEscape(at: number): number {
    const isDropped = this.#rules.escapable?.test(this.#text.charAt(at + 1)) ?? false;
    if (!isDropped) return this.#keep(at, 2);
    return this.#keep(at + 1, 1);
  }

  #readCode(at: number): number {
    const length = lengthOf(BACKTICKS, this.#text, at);
    const fence = Math.min(length, MAX_FENCE_LENGTH);
    const close = this.#unclosed.has(fence) ? -1 : this.#text.indexOf('`'.repeat(fence), at + length);
    if (close === -1) {
      this.#unclosed.add(fence);
      return this.#keep(at, length);
    }
    const code = this.#text.slice(at, close + fence);
    this.#parts.push(this.#rules.escapable === undefined ? code : code.replace(/\\([`\\])/g, '$1'));
    return close + fence;
  }

  #readAngle(at: number): number {
    ANGLE.lastIndex = at;
    const found = ANGLE.exec(this.#text);
    const text = found === null ? null : (this.#rules.angleText?.(found[1]!) ?? null);
    if (found === null || text === null) return this.#keep(at, 1);
    this.#parts.push(text);
    return at + found[0].length;
  }

  #readLink(at: number): number {
    const opening = this.#openings.pop();
    const end = opening !== undefined && this.#text[at + 1] === '(' ? this.#targetEnd(at + 2) : -1;
    if (opening === undefined || end === -1) return this.#keep(at, 1);
    const target = this.#text.slice(at + 2, end - 1).replace(/\s+"[^"]*"$/, '');
    const label = this.#parts.splice(opening).slice(1).join('');
    // Links are not nested, so the brackets that were opened before this link begin no other link. Dropping them also
    // ensures that no label is joined more than once.
    this.#openings = [];
    this.#parts.push(
      this.#linkText(label, this.#unescaped(target.replace(/^<|>$/g, '')), this.#text.slice(at + 1, end)),
    );
    return end;
  }

  #linkText(label: string, target: string, typed: string): string {
    const url = safeLink(target);
    const isOtherApp = /^[a-z][a-z0-9+.-]+:/i.test(target);
    if (url === '' && !isOtherApp) return `[${label}]${typed}`;
    this.#dropImageMark();
    return labelledLink(label, url);
  }

  /** Removes the `!` in front of a link: in Markdown it makes the link an image. */
  #dropImageMark(): void {
    const before = this.#parts.pop() ?? '';
    this.#parts.push(before.endsWith('!') ? before.slice(0, -1) : before);
  }

  #unescaped(target: string): string {
    return this.#rules.escapable === undefined ? target : target.replace(/\\(.)/g, '$1');
  }

  /**
   * The position after the `)` that closes a link's address; -1: none closes it. The address may contain balanced
   * parentheses.
   */
  #targetEnd(start: number): number {
    if (start < this.#deadEnd) return -1;
    const limit = Math.min(this.#text.length, start + MAX_TARGET_LENGTH);
    let depth = 0;
    let at = start;
    for (; at < limit && this.#text[at]! > ' '; at += 1) {
      const char = this.#text[at];
      if (char === '\\') at += 1;
      else if (char === '(') depth += 1;
      else if (char === ')' && depth === 0) return at + 1;
      else if (char === ')') depth -= 1;
    }
    const titleLength = lengthOf(TITLE_AND_END, this.#text, at);
    if (titleLength > 0) return at + titleLength;
    this.#deadEnd = at;
    return -1;
  }
}

/** The length of the match of a sticky regular expression at a position; 0: no match. */
function lengthOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0].length ?? 0;
}
