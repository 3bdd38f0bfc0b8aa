import { valueAt, type ObjectValue, type Value } from '../../packages/hocon/src/index.ts';
import { describeValue, isPlaceholder } from './value-types.ts';
import type { KeySpec, Diagnostics } from './value-types.ts';
import type { ConfigProblem } from './problem.ts';
import { settingEntries } from './schema.ts';
import type { SettingKey, Settings } from './schema.ts';
import { findUnknownKeys, sectionsOf } from './unknown-keys.ts';

interface SettingsReading {
  /** The values of the keys. They are complete only if `missing` and `problems` are empty. */
  readonly settings: Partial<Settings>;
  /** Placeholders that are left, and required keys that are not set. */
  readonly missing: readonly ConfigProblem[];
  readonly problems: readonly ConfigProblem[];
  /** Warnings about keys that the schema does not contain, and about valid values that are probably not intended. */
  readonly warnings: readonly ConfigProblem[];
}

/**
 * Reads keys from a parsed tree (reference.conf, overridden by the administrator's file); by default all keys of the
 * schema. A problem with a key that is not set names `file`. Never throws: the caller decides what to do about the
 * problems.
 */
export function readSettings(root: ObjectValue, file: string, entries = settingEntries()): SettingsReading {
  const problems: ConfigProblem[] = [];
  const missing = findPlaceholdersInTree(root, '');
  const valueWarnings: ConfigProblem[] = [];
  const diagnostics: Diagnostics = {
    refuse: (key, value, sentence) => problems.push(problemAt(key, value, sentence)),
    warn: (key, value, sentence) => valueWarnings.push(problemAt(key, value, sentence)),
  };
  const settings: Partial<Record<SettingKey, unknown>> = {};
  const broken = refuseBrokenSections(root, diagnostics);
  for (const [key, entry] of entries) {
    if (broken.some((section) => key.startsWith(`${section}.`))) continue;
    const value = valueAt(root, key.split('.'));
    if (value !== null && value.kind !== 'null') settings[key] = entry.kind.read(key, value, diagnostics);
    else if (entry.presence === 'optional') settings[key] = null;
    else if (entry.presence === 'required') missing.push({ file, line: null, key, sentence: 'is not set' });
    else refuseNulledDefault(key, entry, value ?? root, diagnostics);
  }
  const warnings = findUnknownKeys(root, settingEntries()).map(({ key, value, suggestion }) =>
    problemAt(key, value, suggestion === null ? 'unknown key' : `unknown key, did you mean ${suggestion}?`),
  );
  return {
    settings: settings as Partial<Settings>,
    missing: inFileOrder(missing, file),
    problems: inFileOrder(problems, file),
    warnings: inFileOrder([...warnings, ...valueWarnings], file),
  };
}

/** A problem or warning about a value, with the position at which an administrator has to edit the value. */
export function problemAt(key: string, value: Value, sentence: string): ConfigProblem {
  const { file, line, column } = value.origin;
  return { file, line, column, key, sentence };
}

/** Refuses a key that has a default but no value: the administrator has set it to null. */
function refuseNulledDefault(key: string, entry: KeySpec<unknown>, value: Value, diagnostics: Diagnostics): void {
  diagnostics.refuse(key, value, `expected ${entry.kind.expected}, got null`);
}

/**
 * Refuses sections whose value is no object, and returns their paths. Each section is reported once, since none of its
 * keys can be read.
 */
function refuseBrokenSections(root: ObjectValue, diagnostics: Diagnostics): string[] {
  const brokenSections: string[] = [];
  for (const section of sectionsOf(settingEntries().map(([key]) => key))) {
    const value = valueAt(root, section.split('.'));
    if (value === null || value.kind === 'object') continue;
    const keys = settingEntries().filter(([key]) => key.startsWith(`${section}.`));
    if (value.kind === 'null' && keys.every(([, entry]) => entry.presence === 'optional')) continue;
    brokenSections.push(section);
    // The value is never shown: people write the only secret of a section as the value of the section itself.
    if (!isPlaceholder(value)) {
      diagnostics.refuse(section, value, `expected a section { … } of keys, got ${describeValue(value, false)}`);
    }
  }
  return brokenSections;
}

/** Finds placeholders at any depth, also in unknown keys. The configuration is not complete while one is left. */
function findPlaceholdersInTree(value: Value, key: string): ConfigProblem[] {
  if (isPlaceholder(value)) return [problemAt(key, value, 'still holds its placeholder')];
  if (value.kind === 'array')
    return value.items.flatMap((item, index) => findPlaceholdersInTree(item, `${key}[${index}]`));
  if (value.kind !== 'object') return [];
  return [...value.entries].flatMap(([name, entry]) =>
    findPlaceholdersInTree(entry, key === '' ? name : `${key}.${name}`),
  );
}

/**
 * Sorts problems or warnings: first those in the administrator's own file, then those in included files by name, each
 * from top to bottom. Those without a line come last in their file.
 */
function inFileOrder(findings: readonly ConfigProblem[], file: string): ConfigProblem[] {
  const rank = (finding: ConfigProblem): string => (finding.file === file ? '' : finding.file);
  const line = (finding: ConfigProblem): number => finding.line ?? Number.MAX_SAFE_INTEGER;
  return [...findings].sort((a, b) => {
    if (rank(a) !== rank(b)) return rank(a) < rank(b) ? -1 : 1;
    return line(a) - line(b);
  });
}
