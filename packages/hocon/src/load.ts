import { fail } from './error.ts';
import { readTextFile } from './file.ts';
import { includePaths, type IncludeRequest } from './include.ts';
import type { ObjectNode, Scope } from './node.ts';
import type { Oddity } from './oddity.ts';
import { parseInto, type Position } from './parser.ts';
import { resolve } from './resolver.ts';
import type { ObjectValue, Origin } from './value.ts';

/** A file to read, or a text with a name to show in messages. */
export type Source = { readonly path: string } | { readonly name: string; readonly text: string };

/** Surroundings and bounds of a load. */
export interface LoadOptions {
  /** What a substitution falls back to; `process.env` as a rule. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Nesting of objects, arrays and keys, and the length of a chain of substitutions; 200. */
  readonly maxDepth?: number;
  /** Bytes of all sources and included files together; 1 MiB. */
  readonly maxBytes?: number;
  /** Files that include statements read; 100. */
  readonly maxIncludes?: number;
  /** Values written out and definitions looked at; 1,000,000. */
  readonly maxNodes?: number;
  /** Called with the path and the text of every file that is read, an included one too, before it is parsed. */
  readonly onFile?: (path: string, text: string) => void;
  /** Called for what is valid and hardly meant. */
  readonly onOddity?: (oddity: Oddity) => void;
}

/**
 * Reads the sources in order, a later one overriding an earlier one, and resolves substitutions over the merged whole.
 * Reads regular files only and evaluates nothing. Throws HoconError: syntax, cycle, missing or unreadable file, bytes
 * that are not UTF-8, a substitution without a value, a bound exceeded.
 */
export function loadHocon(sources: readonly Source[], options: LoadOptions): ObjectValue {
  const { env, maxDepth = 200, maxBytes = 2 ** 20, maxIncludes = 100, maxNodes = 1_000_000 } = options;
  const { onFile = () => {}, onOddity = () => {} } = options;
  const origin: Origin = { file: 'configuration', line: 1, column: 1 };
  const root: ObjectNode = { kind: 'fields', origin, fields: new Map() };
  const reader = new Reader(root, { maxDepth, maxBytes, maxIncludes, onFile, onOddity });
  for (const source of sources) reader.read(source);
  return resolve(root, { env, maxDepth, maxNodes });
}

interface ReadBounds {
  readonly maxDepth: number;
  readonly maxBytes: number;
  readonly maxIncludes: number;
  readonly onFile: (path: string, text: string) => void;
  readonly onOddity: (oddity: Oddity) => void;
}

/** A file that is being read: what it is, where it is, and where its substitutions are looked up. */
interface Reading {
  readonly file: string;
  readonly path: string | null;
  readonly identity: string | null;
  readonly scopes: readonly Scope[];
  readonly by: Reading | null;
}

/** Reads sources and what they include into one document, within common bounds. */
class Reader {
  readonly #root: ObjectNode;
  readonly #bounds: ReadBounds;
  #bytes = 0;
  #includes = 0;

  constructor(root: ObjectNode, bounds: ReadBounds) {
    this.#root = root;
    this.#bounds = bounds;
  }

  read(source: Source): void {
    const position = { root: this.#root, path: [], depth: 0 };
    this.#root.origin = { file: 'path' in source ? source.path : source.name, line: 1, column: 1 };
    const scopes = [position];
    if ('path' in source) {
      const { path } = source;
      const { origin } = this.#root;
      const file = readTextFile(path, this.#bounds.maxBytes - this.#bytes, origin);
      if (file === null) return fail(origin, `Cannot read ${path}: there is no such file (ENOENT).`);
      this.#bounds.onFile(path, file.text);
      this.#parse(file.text, file.bytes, this.#root, position, {
        file: path,
        path,
        identity: file.identity,
        scopes,
        by: null,
      });
    } else {
      const { name, text } = source;
      const reading = { file: name, path: null, identity: null, scopes, by: null };
      this.#parse(text, Buffer.byteLength(text), this.#root, position, reading);
    }
  }

  #parse(text: string, bytes: number, target: ObjectNode, position: Position, reading: Reading): void {
    this.#bytes += bytes;
    if (this.#bytes > this.#bounds.maxBytes) {
      fail(
        { file: reading.file, line: 1, column: 1 },
        `The configuration exceeds ${this.#bounds.maxBytes} bytes here.`,
      );
    }
    const include = (request: IncludeRequest, into: ObjectNode, at: Position): void =>
      this.#include(request, into, at, reading);
    parseInto(target, position, text, {
      file: reading.file,
      scopes: reading.scopes,
      maxDepth: this.#bounds.maxDepth,
      include,
      onOddity: this.#bounds.onOddity,
    });
  }

  #include(request: IncludeRequest, target: ObjectNode, position: Position, by: Reading): void {
    const paths = includePaths(request.name, by.path);
    if (paths === null) {
      return fail(
        request.origin,
        (quote) => `'${quote(request.name)}' is relative, but this text has no folder; write an absolute path.`,
      );
    }
    const guessed = paths.guesses.filter((path) => this.#includeFile(path, request, target, position, by));
    if (guessed.length > 0 || this.#includeFile(paths.exact, request, target, position, by)) return;
    this.#bounds.onOddity({ kind: 'missing-include', origin: request.origin, path: position.path });
    if (request.required) {
      fail(
        request.origin,
        `Cannot read ${[...paths.guesses, paths.exact].join(' or ')}: there is no such file, and it is required.`,
      );
    }
  }

  /** Reads the file in, or returns false if there is none. */
  #includeFile(path: string, request: IncludeRequest, target: ObjectNode, position: Position, by: Reading): boolean {
    const file = readTextFile(path, this.#bounds.maxBytes - this.#bytes, request.origin);
    if (file === null) return false;
    this.#bounds.onFile(path, file.text);
    for (let outer: Reading | null = by; outer !== null; outer = outer.by) {
      if (outer.identity === file.identity)
        fail(request.origin, `${path} would include itself: ${chain(path, by, outer)}.`);
    }
    if (++this.#includes > this.#bounds.maxIncludes) {
      fail(request.origin, `More than ${this.#bounds.maxIncludes} files are included.`);
    }
    const [scope] = by.scopes;
    const here = scope?.root === position.root && scope.path.length === position.path.length;
    const scopes = here ? by.scopes : [position, ...by.scopes];
    this.#parse(file.text, file.bytes, target, position, { file: path, path, identity: file.identity, scopes, by });
    return true;
  }
}

function chain(path: string, by: Reading, until: Reading): string {
  const files = [path];
  for (let reading: Reading | null = by; reading !== null; reading = reading === until ? null : reading.by)
    files.unshift(reading.file);
  return files.join(' includes ');
}
