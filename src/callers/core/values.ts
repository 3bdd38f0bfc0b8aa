/**
 * Readers of values that a foreign program sent: whatever is of another type than expected counts as absent. A small
 * fault in a foreign format never refuses a message.
 */

export type JsonObject = Readonly<Record<string, unknown>>;

const NO_OBJECT: JsonObject = {};

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value if it is an object; otherwise an empty object. */
export const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : NO_OBJECT);

/**
 * The objects among the first `max` members of a list; empty for other values. One object counts as a list of one: some
 * programs send it so.
 */
export function objectsOf(value: unknown, max: number): readonly JsonObject[] {
  if (isObject(value)) return [value];
  return Array.isArray(value) ? value.slice(0, max).filter(isObject) : [];
}

/**
 * The first `max` entries of an object. For an object of many thousand entries, this costs less than `Object.entries`.
 */
export function entriesOf(value: unknown, max: number): readonly (readonly [string, unknown])[] {
  const entries: [string, unknown][] = [];
  if (!isObject(value)) return entries;
  for (const name in value) {
    if (entries.length === max) break;
    entries.push([name, value[name]]);
  }
  return entries;
}

/** The text of a string, a number or a boolean; empty for everything else. */
export function stringOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}

/** The first of the values that is not blank as a string; empty if there is none. */
export function firstStringOf(...values: readonly unknown[]): string {
  for (const value of values) {
    const found = stringOf(value);
    if (found.trim() !== '') return found;
  }
  return '';
}

/** The value as a number; null if it is no finite number. A string that holds a number counts as that number. */
export function numberOf(value: unknown): number | null {
  const found = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof found === 'number' && Number.isFinite(found) ? found : null;
}

const MAX_DATE_MS = 8.64e15;

/** A moment as ISO 8601 in UTC with whole seconds; empty for null and for a moment out of range. */
export function isoTime(ms: number | null): string {
  return ms !== null && Math.abs(ms) <= MAX_DATE_MS ? new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z') : '';
}

/** Moments without a zone are in UTC: some programs leave it out. */
const MOMENT = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d{1,9})?) ?(Z|[+-]\d\d:?\d\d)?$/i;

/** `isoTime` of a moment that is written in ISO 8601, with `T` or a space; empty for other values. */
export function isoTimeOf(value: unknown): string {
  const [, date, time, zone = 'Z'] = MOMENT.exec(stringOf(value)) ?? [];
  const ms = date === undefined ? Number.NaN : Date.parse(`${date}T${time}${zone}`);
  return isoTime(Number.isNaN(ms) ? null : ms);
}

const MAX_PACKED_LENGTH = 65_536;

/**
 * The parsed value if it is JSON in a string, as some programs send it, and all of them in forms; otherwise the value
 * itself.
 */
export function unpacked(value: unknown): unknown {
  if (typeof value !== 'string' || value.length > MAX_PACKED_LENGTH || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}
