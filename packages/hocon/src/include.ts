import { dirname, extname, isAbsolute, join } from 'node:path';
import type { Sentence } from './error.ts';
import type { Origin } from './value.ts';

/** An include statement. */
export interface IncludeRequest {
  /** The name as the include statement has it. */
  readonly name: string;
  /** Whether a missing file is an error. */
  readonly required: boolean;
  readonly origin: Origin;
}

/** The problem of the name in an include statement, or null. */
export function includeProblem(name: string): Sentence | null {
  if (name === '') return 'The name of the file to include is empty.';
  if (name.includes('\0')) return 'The name of the file to include holds a NUL character.';
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(name)) return null;
  return (quote) => `Found the address '${quote(name)}' after include: only files can be included, nothing is fetched.`;
}

/**
 * The paths that the name in an include statement means, relative to the including file. A name without the suffix
 * `.json` or `.conf` means the files with either suffix, in this order. `includingPath` null: the including text is no
 * file; the result is then null, unless the name is absolute.
 */
export function includePaths(
  name: string,
  includingPath: string | null,
): { exact: string; suffixedCandidates: string[] } | null {
  if (includingPath === null && !isAbsolute(name)) return null;
  const exact = isAbsolute(name) || includingPath === null ? name : join(dirname(includingPath), name);
  const complete = extname(name) === '.conf' || extname(name) === '.json';
  return { exact, suffixedCandidates: complete ? [] : [`${exact}.json`, `${exact}.conf`] };
}
