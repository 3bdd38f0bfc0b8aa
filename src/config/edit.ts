import { dirname, isAbsolute, resolve } from 'node:path';
import { valueAt, type ObjectValue, type Value } from '../../packages/hocon/src/index.ts';
import { isPlaceholder } from './value-types.ts';
import { readTreeFromSources } from './tree.ts';
import { scanLines } from './line-scanner.ts';
import { ConfigError } from './problem.ts';

/** The text of a configuration, and the path of its file, to which includes are relative. */
export interface ConfigText {
  readonly file: string;
  readonly text: string;
}

/** Whether a key has a value. Setup may write an `open` key, but never changes an `answered` one. */
type ConfigKeyState = 'open' | 'answered';

const ADDED_BY_SETUP_COMMENT = '# Added by klatch setup.';

/** Writes a value as HOCON: as JSON, with an escape for each character that editors and terminals do not show. */
export function toHoconLiteral(value: string | number | boolean): string {
  return JSON.stringify(value).replace(/[\u007f-\u009f\u2028\u2029\ufeff]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/**
 * Determines whether a key has a value in the text or in the files that it includes. A key whose value is an
 * environment variable is `answered` even if the variable is not set. A list is `open` only if it contains nothing but
 * placeholders.
 */
export function keyState(source: ConfigText, key: string): ConfigKeyState {
  const value = currentValue(source, key);
  if (value !== null) return holdsOnlyPlaceholders(value) ? 'open' : 'answered';
  return valueAt(parseWithStandInEnv(source, { withOptionalVariables: true }), key.split('.')) === null
    ? 'open'
    : 'answered';
}

/**
 * The value of a key in the text or in the files that it includes; null: the key has no value. Optional environment
 * variables (`${?NAME}`) count as not set.
 */
export function currentValue(source: ConfigText, key: string): Value | null {
  const value = valueAt(parseWithStandInEnv(source, { withOptionalVariables: false }), key.split('.'));
  return value?.kind === 'null' ? null : value;
}

/**
 * Writes the value of one open key: in place of its placeholder, else in place of its commented-out line, else at the
 * end. After each attempt, parses the new text, and discards it if the key lacks the new value or another key has
 * changed. Throws Error if no attempt succeeds.
 */
export function setKey(source: ConfigText, key: string, literal: string): ConfigText {
  const waysToWriteKey = [replacePlaceholder, replaceCommentedKey, appendKey, appendBeforeLastBrace];
  for (const tryToWriteKey of waysToWriteKey) {
    const text = tryToWriteKey(source, key, literal);
    if (text === null) continue;
    const result = { ...source, text };
    if (changesOnlyKey(source, result, key, literal)) return result;
  }
  throw new Error(`${source.file}: ${key} cannot be written into this file; please add it by hand.`);
}

function replacePlaceholder(source: ConfigText, key: string, literal: string): string | null {
  const value = currentValue(source, key);
  if (value?.kind !== 'string' || value.origin.file !== source.file) return null;
  const lines = source.text.split('\n');
  const { line, column } = value.origin;
  const before = lines[line - 1]?.slice(0, column - 1) ?? '';
  const rest = lines[line - 1]?.slice(column - 1) ?? '';
  const token = [`"""${value.text}"""`, `"${value.text}"`, value.text].find((each) => rest.startsWith(each));
  if (token === undefined) return null;
  lines[line - 1] = before + literal + rest.slice(token.length);
  return lines.join('\n');
}

function replaceCommentedKey({ text }: ConfigText, key: string, literal: string): string | null {
  const index = scanLines(text).findIndex(({ kind, keyPath: path }) => kind === 'commented-key' && path === key);
  if (index < 0) return null;
  const { indent, writtenKeyName: name, commentOrValue: old } = scanLines(text)[index]!;
  const lines = text.split('\n');
  const end = lines[index]!.endsWith('\r') ? '\r' : '';
  const line = `${indent}${name} = ${literal}${end}`;
  // If a comment follows the old value, the old line stays, so that the comment is not lost.
  lines.splice(index, /\s(#|\/\/)/.test(old) ? 0 : 1, line);
  return lines.join('\n');
}

function renderAddedKey(text: string, key: string, literal: string): string {
  return `${text.includes(ADDED_BY_SETUP_COMMENT) ? '' : `\n${ADDED_BY_SETUP_COMMENT}\n`}${key} = ${literal}\n`;
}

function appendKey({ text }: ConfigText, key: string, literal: string): string {
  return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${renderAddedKey(text, key, literal)}`;
}

function appendBeforeLastBrace({ text }: ConfigText, key: string, literal: string): string | null {
  const close = text.lastIndexOf('}');
  if (close < 0) return null;
  const before = text.slice(0, close);
  return `${before}${before.endsWith('\n') ? '' : '\n'}${renderAddedKey(text, key, literal)}${text.slice(close)}`;
}

/** True if the key has the new value in `after`, and all other values are the same as in `before`. */
function changesOnlyKey(before: ConfigText, after: ConfigText, key: string, literal: string): boolean {
  const wanted = scalarsByPath(
    parseWithStandInEnv({ file: after.file, text: `${key} = ${literal}` }, { withOptionalVariables: false }),
  );
  const old = scalarsByPath(parseWithStandInEnv(before, { withOptionalVariables: true }));
  let newScalars: Map<string, string>;
  try {
    newScalars = scalarsByPath(parseWithStandInEnv(after, { withOptionalVariables: true }));
  } catch (error) {
    // The new text cannot be parsed, so this way of writing does not fit the file.
    if (error instanceof ConfigError) return false;
    throw error;
  }
  const isOfKey = (path: string): boolean => path === key || path.startsWith(`${key}.`) || path.startsWith(`${key}[`);
  for (const path of old.keys()) if (isOfKey(path)) old.delete(path);
  const expected = new Map([...old, ...wanted]);
  return newScalars.size === expected.size && [...newScalars].every(([path, value]) => expected.get(path) === value);
}

/** All values by their paths, as texts with their types, so that two configurations can be compared. */
function scalarsByPath(value: Value, path = ''): Map<string, string> {
  if (value.kind === 'object') {
    const entries = [...value.entries].map(([name, each]) => [
      ...scalarsByPath(each, path === '' ? name : `${path}.${name}`),
    ]);
    return new Map(entries.flat());
  }
  if (value.kind === 'array') {
    const items = value.items.map((each, index) => [...scalarsByPath(each, `${path}[${index}]`)]);
    return new Map([[path, `list of ${items.length}`], ...items.flat()]);
  }
  if (value.kind === 'null') return new Map([[path, 'null']]);
  return new Map([[path, `${value.kind} ${value.kind === 'boolean' ? value.value : value.text}`]]);
}

/**
 * True if a value consists only of placeholders. False for an empty list, and for a list that also has real values,
 * which a person has to complete.
 */
function holdsOnlyPlaceholders(value: Value): boolean {
  const all = leafValues(value);
  return all.length > 0 && all.every(isPlaceholder);
}

function leafValues(value: Value): Value[] {
  if (value.kind === 'array') return value.items.flatMap(leafValues);
  return value.kind === 'object' ? [...value.entries.values()].flatMap(leafValues) : [value];
}

/**
 * Parses the text without the defaults of reference.conf. Setup runs in another environment than the server. So all
 * required environment variables get a dummy value, and optional ones (`${?NAME}`) only if `withOptionalVariables`.
 */
function parseWithStandInEnv(
  { file, text }: ConfigText,
  { withOptionalVariables }: { readonly withOptionalVariables: boolean },
): ObjectValue {
  const names = [...text.matchAll(/\$\{(\??)\s*([^}\s]+)\s*\}/g)].filter(
    ([, mark]) => withOptionalVariables || mark === '',
  );
  const env = Object.fromEntries(names.map(([, , name]) => [name!, 'from the environment']));
  return readTreeFromSources([{ name: file, text: withAbsoluteIncludes(text, dirname(file)) }], env);
}

/**
 * Makes the paths of relative includes absolute, because the parser gets the text without its folder. Line numbers do
 * not change.
 */
function withAbsoluteIncludes(text: string, folder: string): string {
  return text.replace(/^(\s*include\s+(?:\w+\(\s*)*")([^"\n]+)"/gm, (whole, start: string, name: string) => {
    return isAbsolute(name) || name.includes('://') ? whole : `${start}${resolve(folder, name)}"`;
  });
}
