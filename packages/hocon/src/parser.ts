import { requireJoinable, concatenationText } from './concatenation.ts';
import { Cursor } from './cursor.ts';
import { fail } from './error.ts';
import {
  failWithoutSeparator,
  type SpaceInKey,
  refuseCCommentOrMergeMark,
  requireValueBeforeNextField,
  offsetBeforeSpace,
} from './foreign-syntax.ts';
import { includeProblem, type IncludeRequest } from './include.ts';
import {
  addDefinition,
  type ListNode,
  type Node,
  type ObjectNode,
  type ConcatenationPart,
  type Scalar,
  type LookupScope,
} from './node.ts';
import type { HoconWarning, HoconWarningKind } from './warning.ts';
import type { Origin } from './value.ts';

/** The JSON grammar of a number. */
const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** The position of an object in the document. An object in an array has no path from the document's root. */
export interface ObjectPosition extends LookupScope {
  /** The number of objects, arrays and keys around the object, in all files. */
  readonly depth: number;
}

/** The options for one file. */
interface FileParseOptions {
  /** The name of the file, as the `Origin` of each value has it. */
  readonly file: string;
  /** The scopes in which the paths of this file's substitutions are looked up, in this order. */
  readonly enclosingScopes: readonly LookupScope[];
  readonly maxDepth: number;
  /** Reads the file that an include statement names into `target`. */
  readonly include: (request: IncludeRequest, target: ObjectNode, position: ObjectPosition) => void;
  /** Called for valid text that is probably a mistake. */
  readonly onWarning: (warning: HoconWarning) => void;
}

/** Adds the definitions of a text to `target` at `position`. Throws HoconError at the first mistake. */
export function parseInto(target: ObjectNode, position: ObjectPosition, text: string, options: FileParseOptions): void {
  new Parser(text, options).parseDocument(target, position);
}

class Parser {
  readonly #cursor: Cursor;
  readonly #options: FileParseOptions;
  /** The path of the current field. */
  #fieldPath: readonly string[] = [];
  /** White space inside a key of the path that was read last, and the keys up to there; null: no key contains any. */
  #spaceInKey: SpaceInKey | null = null;
  /** The position of a single quote at the beginning of a word of the current value; null: there is none. */
  #singleQuoteOffset: number | null = null;

  constructor(text: string, options: FileParseOptions) {
    this.#cursor = new Cursor(text, options.file);
    this.#options = options;
  }

  parseDocument(target: ObjectNode, position: ObjectPosition): void {
    const cursor = this.#cursor;
    this.#fieldPath = position.path;
    cursor.skipBlankReturningNewline();
    if (cursor.char === '[')
      cursor.fail('Found an array; expected keys and values, since a configuration file holds an object.');
    if (!cursor.isAt('{')) return this.#parseFields(target, position, null);
    this.#parseFields(target, position, cursor.offset++);
    cursor.skipBlankReturningNewline();
    if (cursor.char !== '') cursor.failFound(' after the } of the whole file; expected its end.');
  }

  /** Reads fields up to the `}` for the `{` at `open`, or up to the end of the file where that is null. */
  #parseFields(target: ObjectNode, position: ObjectPosition, open: number | null): void {
    this.#cursor.skipBlankReturningNewline();
    while (!this.#consumeEnd('}', open)) {
      const origin = this.#cursor.origin();
      if (this.#consumeIncludeKeyword()) this.#options.include(this.#parseIncludeRequest(origin), target, position);
      else this.#parseField(target, position, origin);
      this.#parseSeparator(open === null ? 'the end of the file' : '}');
    }
  }

  #parseField(target: ObjectNode, position: ObjectPosition, origin: Origin): void {
    const cursor = this.#cursor;
    refuseCCommentOrMergeMark(cursor);
    const keys = this.#parsePath('a key');
    const key = { keys, end: offsetBeforeSpace(cursor), spaceInKey: this.#spaceInKey };
    const inner = { root: position.root, path: [...position.path, ...keys], depth: position.depth + keys.length };
    this.#checkDepth(inner.depth, origin);
    const newline = cursor.skipBlankReturningNewline();
    const append = cursor.isAt('+=');
    if (append) cursor.offset += 2;
    else if (cursor.char === '=' || cursor.char === ':') cursor.offset++;
    else if (cursor.char !== '{') failWithoutSeparator(cursor, key, newline);
    const start = cursor.offset;
    if (cursor.skipBlankReturningNewline() || cursor.char === '') requireValueBeforeNextField(cursor, key, start);
    const outer = this.#fieldPath;
    this.#fieldPath = [...outer, ...keys];
    const node = this.#parseValue(append ? { depth: inner.depth } : inner);
    this.#fieldPath = outer;
    addDefinition(target, keys, origin, append ? { kind: 'append', origin: node.origin, item: node } : node);
  }

  /** Skips the separator that two fields or items need between them. */
  #parseSeparator(end: string): void {
    const cursor = this.#cursor;
    const newline = cursor.skipBlankReturningNewline();
    if (cursor.char === ',') {
      cursor.offset++;
      cursor.skipBlankReturningNewline();
      if (cursor.char === ',') cursor.fail('Found a second comma in a row; remove one.');
    } else if (!newline && cursor.char !== end && cursor.char !== '') {
      this.#refuseSingleQuote();
      const hint = /[=:+]/.test(cursor.char) ? ` Text that holds ${cursor.char} needs double quotes.` : '';
      cursor.failFound(`; expected a comma, a new line or ${end}.${hint}`);
    }
  }

  #consumeEnd(close: '}' | ']', open: number | null): boolean {
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

  /**
   * Reads adjacent parts as one value. Without a root in `position`, an object in the value is the root of its own
   * paths.
   */
  #parseValue(position: Partial<LookupScope> & { depth: number }): Node {
    const cursor = this.#cursor;
    const parts: ConcatenationPart[] = [];
    let literal: Node | null = null;
    this.#singleQuoteOffset = null;
    cursor.skipSpaceInLine();
    const origin = cursor.origin();
    for (;;) {
      const spaceBefore = cursor.skipSpaceInLine();
      const start = cursor.origin();
      const node = this.#parsePart(position);
      if (node === null) break;
      if (node.kind !== 'substitution') {
        literal ??= node;
        requireJoinable(literal, node, start);
      }
      parts.push({ spaceBefore, node });
    }
    if (parts[0] === undefined) return cursor.failFound('; expected a value.');
    this.#warnAboutValue(parts, origin);
    if (parts.length === 1) return parts[0].node;
    if (!parts.every(({ node }) => isScalar(node))) return { kind: 'concatenation', origin, parts };
    return {
      kind: 'string',
      origin,
      text: parts.map(({ spaceBefore, node }) => spaceBefore + concatenationText(node)).join(''),
    };
  }

  /** Warns of parts of a value that are probably a mistake; the cursor is after the value. */
  #warnAboutValue(parts: readonly ConcatenationPart[], origin: Origin): void {
    const { text, offset } = this.#cursor;
    const end = text.slice(offset, offset + 2);
    const before = text.charAt(offset - 1);
    const isText = parts.every(({ node }) => isScalar(node));
    if (isText && (end.startsWith('#') || end === '//') && before !== '"' && before.trim() !== '')
      this.#warn('cut-by-comment', origin);
    const adjoins = parts.slice(1).some(({ spaceBefore }) => spaceBefore === '');
    if (isText && adjoins) this.#warn('quotes-removed', origin);
  }

  #warn(kind: HoconWarningKind, origin: Origin): void {
    this.#options.onWarning({ kind, origin, path: this.#fieldPath });
  }

  #refuseSingleQuote(): void {
    if (this.#singleQuoteOffset === null) return;
    this.#cursor.fail(
      'Found a single quote, which quotes nothing; put the text in double quotes.',
      this.#singleQuoteOffset,
    );
  }

  #parsePart(position: Partial<LookupScope> & { depth: number }): Node | null {
    const cursor = this.#cursor;
    const origin = cursor.origin();
    if (cursor.char === '"') {
      const text = cursor.readQuoted();
      if (/\$\{\??\s*[\w."-][^{}]*\}/.test(text)) this.#warn('quoted-substitution', origin);
      return { kind: 'string', origin, text };
    }
    if (cursor.char === '{') return this.#parseObject(position, origin);
    if (cursor.char === '[') return this.#parseList(position.depth, origin);
    if (cursor.isAt('${')) return this.#parseSubstitution(origin);
    const start = cursor.offset;
    const word = cursor.readUnquoted();
    if (word.startsWith("'")) this.#singleQuoteOffset ??= start;
    if (word !== '') return parseScalar(word, origin);
    if (cursor.char === '' || '\n,}]#/:='.includes(cursor.char) || cursor.isAt('+=')) return null;
    refuseCCommentOrMergeMark(cursor);
    this.#refuseSingleQuote();
    return cursor.failFound(', which cannot stand outside quotes; put the text in double quotes.');
  }

  #parseObject({ root, path = [], depth }: Partial<LookupScope> & { depth: number }, origin: Origin): ObjectNode {
    this.#checkDepth(depth + 1, origin);
    const node: ObjectNode = { kind: 'fields', origin, fields: new Map() };
    this.#parseFields(node, { root: root ?? node, path, depth: depth + 1 }, this.#cursor.offset++);
    return node;
  }

  #parseList(depth: number, origin: Origin): ListNode {
    this.#checkDepth(depth + 1, origin);
    const open = this.#cursor.offset++;
    const items: Node[] = [];
    this.#cursor.skipBlankReturningNewline();
    while (!this.#consumeEnd(']', open)) {
      refuseCCommentOrMergeMark(this.#cursor);
      items.push(this.#parseValue({ depth: depth + 1 }));
      this.#parseSeparator(']');
    }
    return { kind: 'items', origin, items };
  }

  #parseSubstitution(origin: Origin): Node {
    const cursor = this.#cursor;
    cursor.offset += 2;
    const optional = cursor.char === '?';
    if (optional) cursor.offset++;
    const path = this.#parsePath('the path of a value');
    if (cursor.char !== '}') cursor.failFound(' in a substitution; expected the } that closes it.');
    cursor.offset++;
    return { kind: 'substitution', origin, path, optional, enclosingScopes: this.#options.enclosingScopes };
  }

  /** Reads a path such as `a.b."c.d"`. Dots in quotes do not separate keys, and white space in a key belongs to it. */
  #parsePath(expected: string): string[] {
    const cursor = this.#cursor;
    const keys: string[] = [];
    let key: string | null = null;
    this.#spaceInKey = null;
    cursor.skipSpaceInLine();
    for (;;) {
      const spaceBefore = cursor.skipSpaceInLine();
      const start = cursor.offset;
      const spaceInKey = key !== null && spaceBefore !== '' ? { offset: start, keys: [...keys, key] } : null;
      if (cursor.char === '"') {
        this.#spaceInKey ??= spaceInKey;
        key = (key ?? '') + spaceBefore + cursor.readQuoted();
        continue;
      }
      const word = cursor.readUnquoted();
      if (word === '') break;
      this.#spaceInKey ??= spaceInKey;
      const [head = '', ...rest] = (spaceBefore + word).split('.');
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

  #consumeIncludeKeyword(): boolean {
    const start = this.#cursor.offset;
    const found = this.#cursor.readUnquoted() === 'include';
    if (!found) this.#cursor.offset = start;
    return found;
  }

  #parseIncludeRequest(origin: Origin): IncludeRequest {
    const cursor = this.#cursor;
    cursor.skipBlankReturningNewline();
    const word = /^[a-z]*/.exec(cursor.text.slice(cursor.offset, cursor.offset + 20))?.[0];
    const request =
      word === 'required'
        ? { ...this.#parseInParentheses(word, () => this.#parseIncludeName()), required: true }
        : { ...this.#parseIncludeName(), required: false };
    const problem = includeProblem(request.name);
    if (problem !== null) cursor.fail(problem, request.start);
    return { name: request.name, required: request.required, origin };
  }

  #parseIncludeName(): { name: string; start: number } {
    const cursor = this.#cursor;
    const start = cursor.offset;
    if (cursor.char === '"') return { name: cursor.readQuoted(), start };
    const word = /^[a-z]*/.exec(cursor.text.slice(start, start + 20))?.[0];
    if (word === 'file') return this.#parseInParentheses(word, () => this.#parseQuotedName());
    if (word === 'url' || word === 'classpath') {
      cursor.fail(
        `Found include ${word}(…), which is not supported: only files can be included, as in include "name.conf".`,
      );
    }
    return cursor.failFound(
      ' after include; expected a file name in double quotes, file("…") or required("…"). A key named include needs double quotes.',
    );
  }

  #parseQuotedName(): { name: string; start: number } {
    const start = this.#cursor.offset;
    if (this.#cursor.char !== '"') this.#cursor.failFound('; expected a file name in double quotes.');
    return { name: this.#cursor.readQuoted(), start };
  }

  #parseInParentheses<T>(word: string, read: () => T): T {
    const cursor = this.#cursor;
    cursor.offset += word.length;
    cursor.skipBlankReturningNewline();
    if (cursor.char !== '(') cursor.failFound(` after ${word}; expected (.`);
    cursor.offset++;
    cursor.skipBlankReturningNewline();
    const result = read();
    cursor.skipBlankReturningNewline();
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

/** The value of an unquoted word. */
function parseScalar(text: string, origin: Origin): Scalar {
  if (text === 'true' || text === 'false') return { kind: 'boolean', origin, value: text === 'true' };
  if (text === 'null') return { kind: 'null', origin };
  const number = JSON_NUMBER.test(text) ? Number(text) : Number.NaN;
  // A number that a double cannot represent (1e999) stays text, as do 007 and 1.2.3.
  return Number.isFinite(number) ? { kind: 'number', origin, text, number } : { kind: 'string', origin, text };
}
