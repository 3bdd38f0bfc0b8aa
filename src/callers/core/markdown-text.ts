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
const MAX_LINK_TARGET_LENGTH = 2_048;
const MAX_FENCE_LENGTH = 3;
const LINK_TITLE_AND_END = /\s+"[^"\n]{0,200}"\)/y;
const BACKTICKS = /`+/y;
const ANGLE = /<([^<>\n]{1,2048})>/y;

/**
 * Converts Markdown to plain text: `[label](address)` becomes `label (address)`. All other marks and code stay as they
 * were typed. Takes one pass, in linear time.
 */
export function markdownText(markdown: string, rules: MarkdownRules = {}, maxLength = MAX_MARKUP_LENGTH): string {
  const text = clipped(markdown, maxLength);
  const markPattern = specialMarkPattern(text, rules);
  return markPattern === null ? text : new MarkdownReader(text, rules).read(markPattern);
}

/** A pattern for those marks that can matter in this text; null: the text has no mark that would change it. */
function specialMarkPattern(text: string, { angleText, escapable }: MarkdownRules): RegExp | null {
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
  #linkOpeningIndexes: number[] = [];
  /**
   * Lengths of opening backtick fences for which the rest of the text has no closing fence. The text is not searched
   * for them again.
   */
  readonly #unclosedFenceLengths = new Set<number>();
  /**
   * The position at which the last search for the end of a link's address failed. An address that begins before this
   * position has no end either, and is not searched.
   */
  #targetSearchFailedAt = 0;

  constructor(text: string, rules: MarkdownRules) {
    this.#text = text;
    this.#rules = rules;
  }

  read(markPattern: RegExp): string {
    let readEnd = 0;
    for (let found = markPattern.exec(this.#text); found !== null; found = markPattern.exec(this.#text)) {
      this.#parts.push(this.#text.slice(readEnd, found.index));
      readEnd = this.#readMark(found[0], found.index);
      markPattern.lastIndex = readEnd;
    }
    this.#parts.push(this.#text.slice(readEnd));
    return this.#parts.join('');
  }

  /** Reads the mark at a position, and returns the position after what was read. */
  #readMark(mark: string, at: number): number {
    if (mark === '\\') return this.#readEscape(at);
    if (mark === '`') return this.#readCode(at);
    if (mark === '<') return this.#readAngle(at);
    if (mark === ']') return this.#readLink(at);
    this.#linkOpeningIndexes.push(this.#parts.length);
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
    const fenceLength = Math.min(length, MAX_FENCE_LENGTH);
    const close = this.#unclosedFenceLengths.has(fenceLength)
      ? -1
      : this.#text.indexOf('`'.repeat(fenceLength), at + length);
    if (close === -1) {
      this.#unclosedFenceLengths.add(fenceLength);
      return this.#keep(at, length);
    }
    const code = this.#text.slice(at, close + fenceLength);
    this.#parts.push(this.#rules.escapable === undefined ? code : code.replace(/\\([`\\])/g, '$1'));
    return close + fenceLength;
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
    const opening = this.#linkOpeningIndexes.pop();
    const end = opening !== undefined && this.#text[at + 1] === '(' ? this.#targetEnd(at + 2) : -1;
    if (opening === undefined || end === -1) return this.#keep(at, 1);
    const target = this.#text.slice(at + 2, end - 1).replace(/\s+"[^"]*"$/, '');
    const label = this.#parts.splice(opening).slice(1).join('');
    // Links are not nested, so the brackets that were opened before this link begin no other link. Dropping them also
    // ensures that no label is joined more than once.
    this.#linkOpeningIndexes = [];
    this.#parts.push(
      this.#linkText(label, this.#unescaped(target.replace(/^<|>$/g, '')), this.#text.slice(at + 1, end)),
    );
    return end;
  }

  #linkText(label: string, target: string, typedTarget: string): string {
    const url = safeLink(target);
    const hasOtherScheme = /^[a-z][a-z0-9+.-]+:/i.test(target);
    if (url === '' && !hasOtherScheme) return `[${label}]${typedTarget}`;
    this.#dropImageMark();
    return labelledLink(label, url);
  }

  /** Removes the `!` in front of a link: in Markdown it makes the link an image. */
  #dropImageMark(): void {
    const precedingPart = this.#parts.pop() ?? '';
    this.#parts.push(precedingPart.endsWith('!') ? precedingPart.slice(0, -1) : precedingPart);
  }

  #unescaped(target: string): string {
    return this.#rules.escapable === undefined ? target : target.replace(/\\(.)/g, '$1');
  }

  /**
   * The position after the `)` that closes a link's address; -1: none closes it. The address may contain balanced
   * parentheses.
   */
  #targetEnd(start: number): number {
    if (start < this.#targetSearchFailedAt) return -1;
    const searchEnd = Math.min(this.#text.length, start + MAX_LINK_TARGET_LENGTH);
    let depth = 0;
    let at = start;
    for (; at < searchEnd && this.#text[at]! > ' '; at += 1) {
      const char = this.#text[at];
      if (char === '\\') at += 1;
      else if (char === '(') depth += 1;
      else if (char === ')' && depth === 0) return at + 1;
      else if (char === ')') depth -= 1;
    }
    const titleLength = lengthOf(LINK_TITLE_AND_END, this.#text, at);
    if (titleLength > 0) return at + titleLength;
    this.#targetSearchFailedAt = at;
    return -1;
  }
}

/** The length of the match of a sticky regular expression at a position; 0: no match. */
function lengthOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0].length ?? 0;
}
