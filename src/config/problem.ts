/** A problem or warning of the configuration, with its place. */
export interface ConfigProblem {
  /** The file's path as the administrator or an include wrote it. */
  readonly file: string;
  /** The line number, from 1; null: the file does not contain the key. */
  readonly line: number | null;
  /** The column, from 1; absent if `line` is null. */
  readonly column?: number;
  /** The path of the key, such as `http.port`; empty if the text could not be parsed. */
  readonly key: string;
  /** The problem as a sentence, which never contains the value of a secret. */
  readonly sentence: string;
  /** The line of the file, and below it a caret at the column; absent if the line may contain a secret. */
  readonly excerpt?: readonly string[];
}

/** Formats a problem in one line as `file:line:column: key: sentence`, without the parts that are unknown. */
export function formatProblem({ file, line, column, key, sentence }: ConfigProblem): string {
  const position = [file, ...(line === null ? [] : [line, ...(column === undefined ? [] : [column])])];
  return `${position.join(':')}: ${key === '' ? '' : `${key}: `}${sentence}`;
}

/** Formats a problem, followed by its line of the file if that may be shown. */
export function formatWithExcerpt(problem: ConfigProblem): string {
  return [formatProblem(problem), ...(problem.excerpt ?? [])].join('\n');
}

/**
 * Thrown when the configuration has problems. `problems` contains all of them; the message shows each with its line.
 */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(problems.map(formatWithExcerpt).join('\n'));
    this.problems = problems;
  }
}

/**
 * Thrown when the configuration still contains placeholders, or lacks keys without a default: commands then exit with
 * status 78. `problems` has all other problems of the configuration, so that one run shows everything.
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

/** Thrown when no configuration file exists at any of the searched paths. */
export class ConfigNotFoundError extends Error {
  override readonly name = 'ConfigNotFoundError';
  readonly searchedPaths: readonly string[];

  constructor(searchedPaths: readonly string[]) {
    const list = searchedPaths.map((place) => `  ${place}`).join('\n');
    super(`There is no configuration file. Looked for:\n${list}\n"klatch setup" makes one.`);
    this.searchedPaths = searchedPaths;
  }
}
