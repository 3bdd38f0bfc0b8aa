/** A problem or warning of the configuration, with its place. */
export interface ConfigProblem {
  /** The file's path as the administrator or an include wrote it. */
  readonly file: string;
  /** Null: the file does not contain the key. */
  readonly line: number | null;
  /** Absent if `line` is null. */
  readonly column?: number;
  /** Path of the key such as `http.port`; empty if the text could not be parsed. */
  readonly key: string;
  /** Never holds the value of a secret. */
  readonly sentence: string;
  /** The line, and below it a caret at the column; absent if the line may contain a secret. */
  readonly excerpt?: readonly string[];
}

/** `file:line:column: key: sentence` on one line, without the parts that are not known. */
export function formatProblem({ file, line, column, key, sentence }: ConfigProblem): string {
  const position = [file, ...(line === null ? [] : [line, ...(column === undefined ? [] : [column])])];
  return `${position.join(':')}: ${key === '' ? '' : `${key}: `}${sentence}`;
}

/** Formats a problem together with its line, if the line may be shown. */
export function formatWithExcerpt(problem: ConfigProblem): string {
  return [formatProblem(problem), ...(problem.excerpt ?? [])].join('\n');
}

/** The configuration has problems. `problems` contains all of them; the message shows each with its line. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(problems.map(formatWithExcerpt).join('\n'));
    this.problems = problems;
  }
}

/**
 * The configuration still contains placeholders, or lacks keys without a default: commands then exit with 78.
 * `problems` are the problems of the same reading, so that one run shows everything.
 */
export class NotConfiguredError extends Error {
  override readonly name = 'NotConfiguredError';
  readonly missing: readonly ConfigProblem[];
  readonly problems: readonly ConfigProblem[];

  constructor(missing: readonly ConfigProblem[], problems: readonly ConfigProblem[] = []) {
    const lines = [...missing, ...problems].map(formatWithExcerpt);
    super(['Klatch is not configured yet: run "klatch setup", or edit these keys:', ...lines].join('\n'));
    this.missing = missing;
    this.problems = problems;
  }
}

/** No configuration file exists at any of the searched paths. */
export class ConfigNotFoundError extends Error {
  override readonly name = 'ConfigNotFoundError';
  readonly searchedPaths: readonly string[];

  constructor(searchedPaths: readonly string[]) {
    const list = searchedPaths.map((place) => `  ${place}`).join('\n');
    super(`There is no configuration file. Looked for:\n${list}\n"klatch setup" makes one.`);
    this.searchedPaths = searchedPaths;
  }
}
