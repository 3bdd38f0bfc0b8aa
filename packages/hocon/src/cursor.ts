import { fail, type Sentence } from './error.ts';
import type { Origin } from './value.ts';

/** The characters that unquoted text cannot contain, besides white space and `//`. */
const FORBIDDEN_UNQUOTED = '$"{}[]:=,+#`^?!@*&\\';

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ['\\', '\\'],
  ['/', '/'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
]);

/** Reads the tokens of one text from left to right, and computes the positions of offsets. */
export class Cursor {
  readonly text: string;
  offset = 0;
  readonly #file: string;
  readonly #lineStarts: number[] = [0];

  constructor(text: string, file: string) {
    this.text = text.startsWith('\uFEFF') ? text.slice(1) : text;
    this.#file = file;
    for (let at = this.text.indexOf('\n'); at >= 0; at = this.text.indexOf('\n', at + 1)) this.#lineStarts.push(at + 1);
  }

  /** The character at the offset; empty at the end. */
  get char(): string {
    return this.text.charAt(this.offset);
  }

  /** Whether the text continues with this token. */
  isAt(token: string): boolean {
    return this.text.startsWith(token, this.offset);
  }

  /** The file, line and column of an offset. */
  origin(offset = this.offset): Origin {
    let low = 0;
    let high = this.#lineStarts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((this.#lineStarts[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return { file: this.#file, line: low + 1, column: offset - (this.#lineStarts[low] ?? 0) + 1 };
  }

  /** Throws a HoconError with a problem at an offset. */
  fail(sentence: Sentence, offset = this.offset): never {
    fail(this.origin(offset), sentence);
  }

  /** Throws a HoconError about the token at an offset; its sentence begins with `Found '<token>'`. */
  failFound(rest: Sentence, offset = this.offset): never {
    const found = this.#describeTokenAt(offset);
    this.fail((quote) => {
      const what = found.startsWith('the end of') ? found : `'${quote(found)}'`;
      return `Found ${what}${typeof rest === 'string' ? rest : rest(quote)}`;
    }, offset);
  }

  #describeTokenAt(offset: number): string {
    if (offset >= this.text.length) return 'the end of the file';
    const char = this.text.charAt(offset);
    if (char === '\n' || this.text.startsWith('\r\n', offset)) return 'the end of the line';
    const end = this.#wordEnd(offset);
    const word = end > offset ? this.text.slice(offset, end) : char;
    return word.length > 40 ? `${word.slice(0, 40)}…` : word;
  }

  /** Skips white space up to the end of the line and returns it. */
  skipSpaceInLine(): string {
    const start = this.offset;
    while (this.char !== '\n' && isSpaceOrLineEnd(this.text.charCodeAt(this.offset))) this.offset++;
    return this.text.slice(start, this.offset);
  }

  /** Skips white space, comments and line ends; returns whether a line ended. */
  skipBlankReturningNewline(): boolean {
    let newline = false;
    for (;;) {
      this.skipSpaceInLine();
      if (this.isAt('#') || this.isAt('//')) this.offset = this.#lineEnd();
      else if (this.char === '\n') newline = ++this.offset > 0;
      else return newline;
    }
  }

  /** Reads unquoted text up to a character that it cannot contain; empty if there is none. */
  readUnquoted(): string {
    const start = this.offset;
    this.offset = this.#wordEnd();
    const word = this.text.slice(start, this.offset);
    const [number = ''] = /^[-+.\deE]*/.exec(word) ?? [];
    // `#wordEnd` reads the + of an exponent as part of the word, but only a number can contain it.
    if (number.includes('+') && !Number.isFinite(Number(number))) {
      const plus = start + word.indexOf('+');
      this.fail("Found '+', which cannot stand outside quotes; put the text in double quotes.", plus);
    }
    return word;
  }

  /** Reads a text in quotes or in triple quotes; the offset is at the first quote. */
  readQuoted(): string {
    if (this.isAt('"""')) return this.#readTripleQuoted();
    const open = this.offset++;
    let result = '';
    for (;;) {
      const start = this.offset;
      while (this.char !== '"' && this.char !== '\\' && this.text.charCodeAt(this.offset) >= 0x20) this.offset++;
      result += this.text.slice(start, this.offset);
      if (this.char === '"') break;
      if (this.char === '\\') result += this.#readEscape();
      else this.#failInQuotes(open);
    }
    this.offset++;
    return result;
  }

  #failInQuotes(open: number): never {
    if (this.char === '') this.fail('This quote is never closed: the file ends before another ".', open);
    if (this.char === '\n' || this.isAt('\r\n')) {
      this.fail(
        'This quote is not closed before its line ends; close it, or put """ around text of several lines.',
        open,
      );
    }
    const code = toFourHexDigits(this.text.charCodeAt(this.offset));
    this.fail(`Found the control character U+${code} in quoted text; write it as \\u${code}.`);
  }

  #readTripleQuoted(): string {
    const open = this.offset;
    let close = this.text.indexOf('"""', open + 3);
    if (close < 0) this.fail('This """ is never closed: the file ends before another """.', open);
    // Any quotes before the last three belong to the text.
    while (this.text[close + 3] === '"') close++;
    this.offset = close + 3;
    return this.text.slice(open + 3, close);
  }

  #readEscape(): string {
    const start = this.offset;
    const escaped = this.text.charAt(start + 1);
    const plain = ESCAPES.get(escaped);
    this.offset += 2;
    if (plain !== undefined) return plain;
    if (escaped !== 'u') {
      this.fail(
        (quote) =>
          `Found the escape '\\${quote(escaped)}'; expected one of \\" \\\\ \\/ \\b \\f \\n \\r \\t \\u. A backslash is written \\\\.`,
        start,
      );
    }
    const unit = this.#readHexUnit(start);
    if (unit < 0xd800 || unit > 0xdfff) return String.fromCharCode(unit);
    const low = unit < 0xdc00 && this.isAt('\\u') ? this.#readLowSurrogate() : 0;
    if (low < 0xdc00 || low > 0xdfff)
      this.fail(
        (quote) => `Found \\u${quote(toFourHexDigits(unit))}, one half of a surrogate pair without the other.`,
        start,
      );
    return String.fromCharCode(unit, low);
  }

  #readLowSurrogate(): number {
    this.offset += 2;
    return this.#readHexUnit(this.offset - 2);
  }

  #readHexUnit(escapeStart: number): number {
    const digits = this.text.slice(this.offset, this.offset + 4);
    if (!/^[0-9a-fA-F]{4}$/.test(digits)) this.fail('Expected four hexadecimal digits after \\u.', escapeStart);
    this.offset += 4;
    return Number.parseInt(digits, 16);
  }

  #lineEnd(): number {
    const end = this.text.indexOf('\n', this.offset);
    return end < 0 ? this.text.length : end;
  }

  #wordEnd(start = this.offset): number {
    let end = start;
    for (; end < this.text.length; end++) {
      const char = this.text.charAt(end);
      if (isSpaceOrLineEnd(this.text.charCodeAt(end)) || (char === '/' && this.text[end + 1] === '/')) break;
      if (FORBIDDEN_UNQUOTED.includes(char) && !(char === '+' && this.#isInExponent(start, end))) break;
    }
    return end;
  }

  /** `1e+5` is a number although unquoted text cannot contain `+`. */
  #isInExponent(start: number, plus: number): boolean {
    const digit = /\d/.test(this.text.charAt(plus + 1));
    return digit && /^-?\d[\d.]*[eE]$/.test(this.text.slice(start, plus));
  }
}

/** White space by the specification, line ends included. JavaScript's own definition lacks U+001C to U+001F. */
function isSpaceOrLineEnd(code: number): boolean {
  if (code < 0x80) return code === 0x20 || (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x1f);
  return /\s/.test(String.fromCharCode(code));
}

function toFourHexDigits(code: number): string {
  return code.toString(16).toUpperCase().padStart(4, '0');
}
