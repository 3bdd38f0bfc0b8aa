import type { ConfigProblem } from './problem.ts';
import { isMadeOfKeyWords, mayShowText } from './public-text.ts';
import type { ConfigSourceFile } from './public-text.ts';

/** The files of a configuration, by their names. */
type SourceFiles = ReadonlyMap<string, ConfigSourceFile>;

const MAX_EXCERPT_COLUMNS = 100;
/** Characters that control a terminal, or that change the order of the shown text. */
const UNSAFE_CHARACTERS = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/**
 * Makes a problem safe to show. Adds the line of the configuration only if it cannot contain a secret. Hides the name
 * of a key that may be a part of a secret value, such as `hunter2` in `password = abc,hunter2=9`.
 */
export function redactAndExcerpt(problem: ConfigProblem, files: SourceFiles): ConfigProblem {
  const { file, line, column } = problem;
  const source = files.get(file);
  const text = line === null ? '' : (source?.lines[line - 1] ?? '');
  const key = redactedKeyPath(problem, text);
  if (line === null || column === undefined || source?.isPublicLine(line) !== true) return { ...problem, key };
  return { ...problem, key, excerpt: renderExcerpt(text, column) };
}

function redactedKeyPath({ key, column = 0 }: ConfigProblem, line: string): string {
  const parts = key.split(/(\[\d+\]|\.|"[^"]*")/).filter((part) => part !== '');
  const index = parts.findIndex((part) => !/^\[\d+\]$/.test(part) && !isMadeOfKeyWords(part));
  if (index < 0) return key;
  const name = parts[index]!.replaceAll('"', '');
  // `column` is the column of the value; if the value is an object, that of the key's path.
  const path = /^[\w."-]*/.exec(line.slice(column - 1))?.[0] ?? '';
  const start = line.slice(0, column - 1 + path.length).indexOf(name);
  if (column > 0 && start >= 0 && isFieldStart(line.slice(0, start))) return key;
  return `${parts.slice(0, index).join('')}(hidden)`;
}

/**
 * True if a name that follows the text `before` begins a new field. The text may end with sections of the name's path,
 * such as `http.`.
 */
function isFieldStart(before: string): boolean {
  const path = /[\w.-]*\.$/.exec(before)?.[0] ?? '';
  return isMadeOfKeyWords(path) && mayShowText(before.slice(0, before.length - path.length));
}

function renderExcerpt(line: string, column: number): string[] {
  const shown = line.replace(/\r$/, '').replaceAll(UNSAFE_CHARACTERS, ' ');
  const start = Math.max(0, Math.min(column - MAX_EXCERPT_COLUMNS / 2, shown.length - MAX_EXCERPT_COLUMNS));
  const part = shown.slice(start, start + MAX_EXCERPT_COLUMNS).trimEnd();
  const indent = part.length - part.trimStart().length;
  const caret = Math.max(0, column - 1 - start - indent);
  return [`    ${part.trimStart()}`, `    ${' '.repeat(caret)}^`];
}
