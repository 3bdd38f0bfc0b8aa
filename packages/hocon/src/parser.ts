import { checkJoin, textOf } from './concatenation.ts';
import { Cursor } from './cursor.ts';
import { fail } from './error.ts';
import { failWithoutSeparator, type Gap, refuseForeignSyntax, requireValue, endBefore } from './foreign-syntax.ts';
import { includeProblem, type IncludeRequest } from './include.ts';
import { assign, type ListNode, type Node, type ObjectNode, type Part, type Scalar, type Scope } from './node.ts';
import type { Oddity, OddityKind } from './oddity.ts';
import type { Origin } from './value.ts';

/** The JSON grammar of a number. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Where in the document an object is being read; an object in an array has no path from the document's root. */
export interface Position extends Scope {
  /** Objects, arrays and keys around it, in all files. */
  readonly depth: number;
}

/** What one file is parsed with. */
interface ParseOptions {
  /** The name that origins carry. */
  readonly file: string;
  /** Where substitutions of this file are looked up, first to last. */
  readonly scopes: readonly Scope[];
  readonly maxDepth: number;
  /** Reads the file that an include statement names into `target`. */
  readonly include: (request: IncludeRequest, target: ObjectNode, position: Position) => void;
  /** Called for what is valid and hardly meant. */
  readonly onOddity: (oddity: Oddity) => void;
}

/** Adds the definitions of a text to `target`, which stands at `position`. Throws HoconError at the first mistake. */
export function parseInto(target: ObjectNode, position: Position, text: string, options: ParseOptions): void {
  new Parser(text, options).document(target, position);
}

class Parser {
  readonly #cursor: Cursor;
  readonly #options: ParseOptions;
  /** The path of the field that is being read. */
  #keys: readonly string[] = [];
  /** Where the last path has white space inside a key, and the path up to there. */
  #gap: Gap | null = null;
  /** Where a word of the value that is being read begins with a single quote. */
  #singleQuote: number | null = null;

  constructor(text: string, options: ParseOptions) {
    this.#cursor = new Cursor(text, options.file);
    this.#options = options;
  }

  document(target: ObjectNode, position: Position): void {
    const cursor = this.#cursor;
    this.#keys = position.path;
    cursor.skipBlank();
    if (cursor.char === '[')
      cursor.fail('Found an array; expected keys and values, since a configuration file holds an object.');
    if (!cursor.at('{')) return this.#fields(target, position, null);
    this.#fields(target, position, cursor.offset++);
    cursor.skipBlank();
    if (cursor.char !== '') cursor.failFound(' after the } of the whole file; expected its end.');
  }

  /** Reads fields up to the `}` for the `{` at `open`, or up to the end of the file where that is null. */
  #fields(target: ObjectNode, position: Position, open: number | null): void {
    this.#cursor.skipBlank();
    while (!this.#ends('}', open)) {
      const origin = this.#cursor.origin();
      if (this.#atInclude()) this.#options.include(this.#includeRequest(origin), target, position);
      else this.#field(target, position, origin);
      this.#separator(open === null ? 'the end of the file' : '}');
    }
  }

  #field(target: ObjectNode, position: Position, origin: Origin): void {
    const cursor = this.#cursor;
    refuseForeignSyntax(cursor);
    const keys = this.#path('a key');
    const key = { keys, end: endBefore(cursor), gap: this.#gap };
    const inner = { root: position.root, path: [...position.path, ...keys], depth: position.depth + keys.length };
    this.#checkDepth(inner.depth, origin);
    const newline = cursor.skipBlank();
    const append = cursor.at('+=');
    if (append) cursor.offset += 2;
    else if (cursor.char === '=' || cursor.char === ':') cursor.offset++;
    else if (cursor.char !== '{') failWithoutSeparator(cursor, key, newline);
    const start = cursor.offset;
    if (cursor.skipBlank() || cursor.char === '') requireValue(cursor, key, start);
    const outer = this.#keys;
    this.#keys = [...outer, ...keys];
    const node = this.#value(append ? { depth: inner.depth } : inner);
    this.#keys = outer;
    assign(target, keys, origin, append ? { kind: 'append', origin: node.origin, item: node } : node);
  }

  /** Skips what has to stand between two fields or items. */
  #separator(end: string): void {
    const cursor = this.#cursor;
    const newline = cursor.skipBlank();
    if (cursor.char === ',') {
      cursor.offset++;
      cursor.skipBlank();
      if (cursor.char === ',') cursor.fail('Found a second comma in a row; remove one.');
    } else if (!newline && cursor.char !== end && cursor.char !== '') {
      this.#refuseSingleQuote();
      const hint = /[=:+]/.test(cursor.char) ? ` Text that holds ${cursor.char} needs double quotes.` : '';
      cursor.failFound(`; expected a comma, a new line or ${end}.${hint}`);
    }
  }

  #ends(close: '}' | ']', open: number | null): boolean {
    const cursor = this.#cursor;
    if (cursor.char === '' && open !== null) {
      cursor.fail(`This ${close === '}' ? '{' : '['} is never closed: the file ends before its ${close}.`, open);
    }
    if (cursor.char === '') return true;
    if (cursor.char !== close) return false;
    if (open === null) cursor.fail('Found a } that closes nothing; remove it, or add the { that it belongs to.');
    cursor.offset++;
    return true;
  }

  /** Reads all that stands side by side as one value; without a root, objects in it are no part of the document's paths. */
  #value(position: Partial<Scope> & { depth: number }): Node {
    const cursor = this.#cursor;
    const parts: Part[] = [];
    let literal: Node | null = null;
    this.#singleQuote = null;
    cursor.skipSpace();
    const origin = cursor.origin();
    for (;;) {
      const space = cursor.skipSpace();
      const start = cursor.origin();
      const node = this.#part(position);
      if (node === null) break;
      if (node.kind !== 'substitution') {
        literal ??= node;
        checkJoin(literal, node, start);
      }
      parts.push({ space, node });
    }
    if (parts[0] === undefined) return cursor.failFound('; expected a value.');
    this.#noteOddities(parts, origin);
    if (parts.length === 1) return parts[0].node;
    if (!parts.every(({ node }) => isScalar(node))) return { kind: 'concatenation', origin, parts };
    return { kind: 'string', origin, text: parts.map(({ space, node }) => space + textOf(node)).join('') };
  }

  /** Notes what of a value somebody may have meant otherwise; the cursor is behind the value. */
  #noteOddities(parts: readonly Part[], origin: Origin): void {
    const { text, offset } = this.#cursor;
    const end = text.slice(offset, offset + 2);
    const before = text.charAt(offset - 1);
    const isText = parts.every(({ node }) => isScalar(node));
    if (isText && (end.startsWith('#') || end === '//') && before !== '"' && before.trim() !== '')
      this.#note('cut-by-comment', origin);
    const adjoins = parts.slice(1).some(({ space }) => space === '');
    if (isText && adjoins) this.#note('quotes-removed', origin);
  }

  #note(kind: OddityKind, origin: Origin): void {
    this.#options.onOddity({ kind, origin, path: this.#keys });
  }

  #refuseSingleQuote(): void {
    if (this.#singleQuote === null) return;
    this.#cursor.fail('Found a single quote, which quotes nothing; put the text in double quotes.', this.#singleQuote);
  }

  #part(position: Partial<Scope> & { depth: number }): Node | null {
    const cursor = this.#cursor;
    const origin = cursor.origin();
    if (cursor.char === '"') {
      const text = cursor.quoted();
      if (/\$\{\??\s*[\w."-][^{}]*\}/.test(text)) this.#note('quoted-substitution', origin);
      return { kind: 'string', origin, text };
    }
    if (cursor.char === '{') return this.#object(position, origin);
    if (cursor.char === '[') return this.#list(position.depth, origin);
    if (cursor.at('${')) return this.#substitution(origin);
    const start = cursor.offset;
    const word = cursor.unquoted();
    if (word.startsWith("'")) this.#singleQuote ??= start;
    if (word !== '') return scalar(word, origin);
    if (cursor.char === '' || '\n,}]#/:='.includes(cursor.char) || cursor.at('+=')) return null;
    refuseForeignSyntax(cursor);
    this.#refuseSingleQuote();
    return cursor.failFound(', which cannot stand outside quotes; put the text in double quotes.');
  }

  #object({ root, path = [], depth }: Partial<Scope> & { depth: number }, origin: Origin): ObjectNode {
    this.#checkDepth(depth + 1, origin);
    const node: ObjectNode = { kind: 'fields', origin, fields: new Map() };
    this.#fields(node, { root: root ?? node, path, depth: depth + 1 }, this.#cursor.offset++);
    return node;
  }

  #list(depth: number, origin: Origin): ListNode {
    this.#checkDepth(depth + 1, origin);
    const open = this.#cursor.offset++;
    const items: Node[] = [];
    this.#cursor.skipBlank();
    while (!this.#ends(']', open)) {
      refuseForeignSyntax(this.#cursor);
      items.push(this.#value({ depth: depth + 1 }));
      this.#separator(']');
    }
    return { kind: 'items', origin, items };
  }

  #substitution(origin: Origin): Node {
    const cursor = this.#cursor;
    cursor.offset += 2;
    const optional = cursor.char === '?';
    if (optional) cursor.offset++;
    const path = this.#path('the path of a value');
    if (cursor.char !== '}') cursor.failFound(' in a substitution; expected the } that closes it.');
    cursor.offset++;
    return { kind: 'substitution', origin, path, optional, scopes: this.#options.scopes };
  }

  /** Reads a path such as `a.b."c.d"`; dots in quotes do not separate, and white space inside a key belongs to it. */
  #path(expected: string): string[] {
    const cursor = this.#cursor;
    const keys: string[] = [];
    let key: string | null = null;
    this.#gap = null;
    cursor.skipSpace();
    for (;;) {
      const space = cursor.skipSpace();
      const start = cursor.offset;
      const gap = key !== null && space !== '' ? { offset: start, keys: [...keys, key] } : null;
      if (cursor.char === '"') {
        this.#gap ??= gap;
        key = (key ?? '') + space + cursor.quoted();
        continue;
      }
      const word = cursor.unquoted();
      if (word === '') break;
      this.#gap ??= gap;
      const [head = '', ...rest] = (space + word).split('.');
      if (key !== null || head !== '') key = (key ?? '') + head;
      for (const piece of rest) {
        keys.push(
          key ??
            cursor.fail(
              (quote) => `Found an empty key in '${quote(word)}'; remove the extra dot, or write "" for it.`,
              start,
            ),
        );
        key = piece === '' ? null : piece;
      }
    }
    if (key !== null) return [...keys, key];
    if (keys.length === 0) cursor.failFound(`; expected ${expected}.`);
    return cursor.fail(
      (quote) => `Found a dot at the end of the path '${quote(keys.join('.'))}.'; expected another key.`,
    );
  }

  #atInclude(): boolean {
    const start = this.#cursor.offset;
    const found = this.#cursor.unquoted() === 'include';
    if (!found) this.#cursor.offset = start;
    return found;
  }

  #includeRequest(origin: Origin): IncludeRequest {
    const cursor = this.#cursor;
    cursor.skipBlank();
    const word = /^[a-z]*/.exec(cursor.text.slice(cursor.offset, cursor.offset + 20))?.[0];
    const request =
      word === 'required'
        ? { ...this.#inParentheses(word, () => this.#includeName()), required: true }
        : { ...this.#includeName(), required: false };
    const problem = includeProblem(request.name);
    if (problem !== null) cursor.fail(problem, request.start);
    return { name: request.name, required: request.required, origin };
  }

  #includeName(): { name: string; start: number } {
    const cursor = this.#cursor;
    const start = cursor.offset;
    if (cursor.char === '"') return { name: cursor.quoted(), start };
    const word = /^[a-z]*/.exec(cursor.text.slice(start, start + 20))?.[0];
    if (word === 'file') return this.#inParentheses(word, () => this.#quotedName());
    if (word === 'url' || word === 'classpath') {
      cursor.fail(
        `Found include ${word}(…), which is not supported: only files can be included, as in include "name.conf".`,
      );
    }
    return cursor.failFound(
      ' after include; expected a file name in double quotes, file("…") or required("…"). A key named include needs double quotes.',
    );
  }

  #quotedName(): { name: string; start: number } {
    const start = this.#cursor.offset;
    if (this.#cursor.char !== '"') this.#cursor.failFound('; expected a file name in double quotes.');
    return { name: this.#cursor.quoted(), start };
  }

  #inParentheses<T>(word: string, read: () => T): T {
    const cursor = this.#cursor;
    cursor.offset += word.length;
    cursor.skipBlank();
    if (cursor.char !== '(') cursor.failFound(` after ${word}; expected (.`);
    cursor.offset++;
    cursor.skipBlank();
    const result = read();
    cursor.skipBlank();
    if (cursor.char !== ')') cursor.failFound(`; expected the ) that closes ${word}(.`);
    cursor.offset++;
    return result;
  }

  #checkDepth(depth: number, origin: Origin): void {
    if (depth > this.#options.maxDepth) {
      fail(origin, `Objects, arrays and keys are nested more than ${this.#options.maxDepth} deep here.`);
    }
  }
}

function isScalar(node: Node): node is Scalar {
  return node.kind === 'string' || node.kind === 'number' || node.kind === 'boolean' || node.kind === 'null';
}

/** The value that an unquoted word stands for. */
function scalar(text: string, origin: Origin): Scalar {
  if (text === 'true' || text === 'false') return { kind: 'boolean', origin, value: text === 'true' };
  if (text === 'null') return { kind: 'null', origin };
  const number = NUMBER.test(text) ? Number(text) : Number.NaN;
  // What a double cannot hold (1e999) stays text, as do 007 and 1.2.3.
  return Number.isFinite(number) ? { kind: 'number', origin, text, number } : { kind: 'string', origin, text };
}
