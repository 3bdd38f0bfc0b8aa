/** One thing about the configuration that somebody has to change, and where it stands. */
export interface ConfigProblem {
  /** The file as it was named: by the administrator, or by an include. */
  readonly file: string;
  /** Null: the key stands nowhere yet. */
  readonly line: number | null;
  /** Left out where the line is not known. */
  readonly column?: number;
  /** Path of the key such as `http.port`; empty where the text could not be read at all. */
  readonly key: string;
  /** Never holds the value of a secret. */
  readonly sentence: string;
  /** The line and a caret beneath the column; left out where a secret may stand in the line. */
  readonly excerpt?: readonly string[];
}

/** `file:line:column: key: sentence` on one line, without the parts that are not known. */
export function formatProblem({ file, line, column, key, sentence }: ConfigProblem): string {
  const position = [file, ...(line === null ? [] : [line, ...(column === undefined ? [] : [column])])];
  return `${position.join(':')}: ${key === '' ? '' : `${key}: `}${sentence}`;
}

/** The same with the line itself, where it may be shown. */
export function formatWithExcerpt(problem: ConfigProblem): string {
  return [formatProblem(problem), ...(problem.excerpt ?? [])].join('\n');
}

/** The configuration has mistakes. `problems` has all of them; the message has each with its line. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(problems.map(formatWithExcerpt).join('\n'));
    this.problems = problems;
  }
}

/**
 * The configuration still holds placeholders, or lacks what has no default: the command line exits 78 for it.
 * `problems` are mistakes found in the same reading, so that nobody has to run it twice.
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

/** There is no configuration file in any of the places that were looked at. */
export class ConfigNotFoundError extends Error {
  override readonly name = 'ConfigNotFoundError';
  readonly searchedPaths: readonly string[];

  constructor(searchedPaths: readonly string[]) {
    const list = searchedPaths.map((place) => `  ${place}`).join('\n');
    super(`There is no configuration file. Looked for:\n${list}\n"klatch setup" makes one.`);
    this.searchedPaths = searchedPaths;
  }
}
