import { fail } from './error.ts';
import { readTextFile } from './file.ts';
import { includePaths, type IncludeRequest } from './include.ts';
import type { ObjectNode, LookupScope } from './node.ts';
import type { HoconWarning } from './warning.ts';
import { parseInto, type ObjectPosition } from './parser.ts';
import { resolve } from './resolver.ts';
import type { ObjectValue, Origin } from './value.ts';

/** A file to read, or a text with a name to show in messages. */
export type Source = { readonly path: string } | { readonly name: string; readonly text: string };

/** The environment, the bounds and the callbacks of a load. */
export interface LoadOptions {
  /** The values that substitutions fall back to; usually `process.env`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * The bound of the depth of nested objects, arrays and keys, and of the length of a chain of substitutions; 200 by
   * default.
   */
  readonly maxDepth?: number;
  /** The bound of the bytes of all sources and included files together; 1 MiB by default. */
  readonly maxBytesOfAllSources?: number;
  /** The bound of the number of files that include statements read; 100 by default. */
  readonly maxIncludedFiles?: number;
  /** The bound of the number of resolved values and examined definitions together; 1,000,000 by default. */
  readonly maxResolvedNodes?: number;
  /** `loadHocon` calls it with the path and text of every file, including included ones, before it parses the file. */
  readonly onFile?: (path: string, text: string) => void;
  /** Called for valid text that is probably a mistake. */
  readonly onWarning?: (warning: HoconWarning) => void;
}

/**
 * Reads the sources in order, and resolves substitutions over the merged whole. Later sources override earlier ones. It
 * reads regular files only and evaluates nothing. It throws a HoconError for:
 * - wrong syntax
 * - a cycle
 * - a missing or unreadable file
 * - bytes that are not UTF-8
 * - a substitution without a value
 * - an exceeded bound
 */
export function loadHocon(sources: readonly Source[], options: LoadOptions): ObjectValue {
  const {
    env,
    maxDepth = 200,
    maxBytesOfAllSources = 2 ** 20,
    maxIncludedFiles = 100,
    maxResolvedNodes = 1_000_000,
  } = options;
  const { onFile = () => {}, onWarning = () => {} } = options;
  const origin: Origin = { file: 'configuration', line: 1, column: 1 };
  const root: ObjectNode = { kind: 'fields', origin, fields: new Map() };
  const reader = new SourceReader(root, { maxDepth, maxBytesOfAllSources, maxIncludedFiles, onFile, onWarning });
  for (const source of sources) reader.read(source);
  return resolve(root, { env, maxDepth, maxResolvedNodes });
}

interface SourceReaderOptions {
  readonly maxDepth: number;
  readonly maxBytesOfAllSources: number;
  readonly maxIncludedFiles: number;
  readonly onFile: (path: string, text: string) => void;
  readonly onWarning: (warning: HoconWarning) => void;
}

/**
 * A source or included file that is being read, and the file that includes it. `enclosingScopes`: where the paths of
 * its substitutions are looked up.
 */
interface IncludeFrame {
  readonly file: string;
  readonly path: string | null;
  readonly identity: string | null;
  readonly enclosingScopes: readonly LookupScope[];
  readonly includedBy: IncludeFrame | null;
}

/** Reads sources and their included files into one document, within bounds that apply to all of them together. */
class SourceReader {
  readonly #root: ObjectNode;
  readonly #options: SourceReaderOptions;
  #totalBytes = 0;
  #includedFileCount = 0;

  constructor(root: ObjectNode, options: SourceReaderOptions) {
    this.#root = root;
    this.#options = options;
  }

  read(source: Source): void {
    const position = { root: this.#root, path: [], depth: 0 };
    this.#root.origin = { file: 'path' in source ? source.path : source.name, line: 1, column: 1 };
    const enclosingScopes = [position];
    if ('path' in source) {
      const { path } = source;
      const { origin } = this.#root;
      const file = readTextFile(path, this.#options.maxBytesOfAllSources - this.#totalBytes, origin);
      if (file === null) return fail(origin, `Cannot read ${path}: there is no such file (ENOENT).`);
      this.#options.onFile(path, file.text);
      this.#parseText(file.text, file.bytes, this.#root, position, {
        file: path,
        path,
        identity: file.identity,
        enclosingScopes,
        includedBy: null,
      });
    } else {
      const { name, text } = source;
      const frame = { file: name, path: null, identity: null, enclosingScopes, includedBy: null };
      this.#parseText(text, Buffer.byteLength(text), this.#root, position, frame);
    }
  }

  #parseText(text: string, bytes: number, target: ObjectNode, position: ObjectPosition, frame: IncludeFrame): void {
    this.#totalBytes += bytes;
    if (this.#totalBytes > this.#options.maxBytesOfAllSources) {
      fail(
        { file: frame.file, line: 1, column: 1 },
        `The configuration exceeds ${this.#options.maxBytesOfAllSources} bytes here.`,
      );
    }
    const include = (request: IncludeRequest, into: ObjectNode, at: ObjectPosition): void =>
      this.#processInclude(request, into, at, frame);
    parseInto(target, position, text, {
      file: frame.file,
      enclosingScopes: frame.enclosingScopes,
      maxDepth: this.#options.maxDepth,
      include,
      onWarning: this.#options.onWarning,
    });
  }

  #processInclude(
    request: IncludeRequest,
    target: ObjectNode,
    position: ObjectPosition,
    includedBy: IncludeFrame,
  ): void {
    const paths = includePaths(request.name, includedBy.path);
    if (paths === null) {
      return fail(
        request.origin,
        (quote) => `'${quote(request.name)}' is relative, but this text has no folder; write an absolute path.`,
      );
    }
    const guessed = paths.suffixedCandidates.filter((path) =>
      this.#includeFile(path, request, target, position, includedBy),
    );
    if (guessed.length > 0 || this.#includeFile(paths.exact, request, target, position, includedBy)) return;
    this.#options.onWarning({ kind: 'missing-include', origin: request.origin, path: position.path });
    if (request.required) {
      fail(
        request.origin,
        `Cannot read ${[...paths.suffixedCandidates, paths.exact].join(' or ')}: there is no such file, and it is required.`,
      );
    }
  }

  /** Reads a file into `target`; returns false if there is no such file. */
  #includeFile(
    path: string,
    request: IncludeRequest,
    target: ObjectNode,
    position: ObjectPosition,
    includedBy: IncludeFrame,
  ): boolean {
    const file = readTextFile(path, this.#options.maxBytesOfAllSources - this.#totalBytes, request.origin);
    if (file === null) return false;
    this.#options.onFile(path, file.text);
    for (let outer: IncludeFrame | null = includedBy; outer !== null; outer = outer.includedBy) {
      if (outer.identity === file.identity)
        fail(request.origin, `${path} would include itself: ${includeChain(path, includedBy, outer)}.`);
    }
    if (++this.#includedFileCount > this.#options.maxIncludedFiles) {
      fail(request.origin, `More than ${this.#options.maxIncludedFiles} files are included.`);
    }
    const [scope] = includedBy.enclosingScopes;
    const here = scope?.root === position.root && scope.path.length === position.path.length;
    const enclosingScopes = here ? includedBy.enclosingScopes : [position, ...includedBy.enclosingScopes];
    this.#parseText(file.text, file.bytes, target, position, {
      file: path,
      path,
      identity: file.identity,
      enclosingScopes,
      includedBy,
    });
    return true;
  }
}

function includeChain(path: string, includedBy: IncludeFrame, until: IncludeFrame): string {
  const files = [path];
  for (let frame: IncludeFrame | null = includedBy; frame !== null; frame = frame === until ? null : frame.includedBy)
    files.unshift(frame.file);
  return files.join(' includes ');
}
