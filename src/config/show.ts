import { coerceToArray, valueAt, type ObjectValue, type Value } from '../../packages/hocon/src/index.ts';
import { scalarText } from './value-types.ts';
import type { ValueType } from './value-types.ts';
import { REFERENCE_NAME } from './tree.ts';
import { resolvePath } from './scalars.ts';
import { settingEntries } from './schema.ts';
import type { SettingKey } from './schema.ts';

/** This text is shown in place of a secret. */
export const HIDDEN = '(hidden)';

/** A value of the configuration as JSON data. Durations and sizes are the texts that were written. */
export type ShownValue =
  string | number | boolean | null | readonly ShownValue[] | { readonly [field: string]: ShownValue };

/** One key of the effective configuration. */
export interface ShownSetting {
  readonly key: SettingKey;
  /** The value; null: the key is not set. Secrets are `(hidden)`, and paths are absolute. */
  readonly value: ShownValue;
  /** Where the value is from: `default`, or `file:line`. */
  readonly source: string;
}

/** All keys with their effective values, and where each value is from. Secrets are hidden. */
export function describeConfig(root: ObjectValue): ShownSetting[] {
  return settingEntries().map(([key, { kind }]) => {
    const value = valueAt(root, key.split('.'));
    if (value === null || value.origin.file === REFERENCE_NAME) {
      return { key, value: value === null ? null : showValue(value, kind), source: 'default' };
    }
    return { key, value: showValue(value, kind), source: `${value.origin.file}:${value.origin.line}` };
  });
}

/** Formats settings as text, one line for each key: `http.port = 9090   # default`. */
export function formatConfig(settings: readonly ShownSetting[]): string {
  const left = settings.map(({ key, value }) => `${key} = ${value === null ? '(not set)' : formatShown(value)}`);
  // The width is bounded, so that one long value does not move the comments of all lines out of view.
  const width = Math.min(60, Math.max(...left.map((line) => line.length)));
  return settings.map(({ source }, index) => `${left[index]!.padEnd(width)}   # ${source}\n`).join('');
}

function showValue(value: Value, kind: ValueType<unknown>): ShownValue {
  if (value.kind === 'null') return null;
  if (kind.items !== null) {
    const { items, acceptsOneItem = false } = kind;
    const singleItem = acceptsOneItem ? showValue(value, items) : HIDDEN;
    return coerceToArray(value)?.items.map((item) => showValue(item, items)) ?? singleItem;
  }
  if (value.kind === 'array') return value.items.map(() => HIDDEN);
  if (value.kind === 'object') return showFields(value, kind);
  // An empty password is shown: it is no secret, and shows why a database may refuse the connection.
  if (kind.hidden) return scalarText(value) === '' ? '' : HIDDEN;
  if (value.kind === 'number') return value.number;
  if (value.kind === 'boolean') return value.value;
  return kind.isPath ? resolvePath(value, value.text) : value.text;
}

/** The known fields of an object. Unknown fields are left out, since they may contain secrets. */
function showFields(value: ObjectValue, kind: ValueType<unknown>): ShownValue {
  const fields = Object.entries(kind.fields ?? {}).flatMap(([name, entry]): [string, ShownValue][] => {
    const field = value.entries.get(name);
    return field === undefined ? [] : [[name, showValue(field, entry.kind)]];
  });
  return Object.fromEntries(fields);
}

function formatShown(value: ShownValue): string {
  if (value === HIDDEN) return HIDDEN;
  if (Array.isArray(value)) return `[${value.map(formatShown).join(', ')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  return `{ ${Object.entries(value)
    .map(([name, field]) => `${name} = ${formatShown(field)}`)
    .join(', ')} }`;
}
