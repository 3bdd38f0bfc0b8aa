/**
 * These functions read values that another program sent. A value of an unexpected type counts as absent, so that a
 * small fault in a body does not prevent its message.
 */

export type JsonObject = Readonly<Record<string, unknown>>;

const NO_OBJECT: JsonObject = {};

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value if it is an object; otherwise an empty object. */
export const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : NO_OBJECT);

/**
 * The objects among the first `max` elements of a list; empty for other values. A single object counts as a list of
 * one, since some programs send that.
 */
export function objectsOf(value: unknown, max: number): readonly JsonObject[] {
  if (isObject(value)) return [value];
  return Array.isArray(value) ? value.slice(0, max).filter(isObject) : [];
}

/**
 * The first `max` entries of an object. For an object with many thousand entries, this is faster than `Object.entries`.
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

/** A string, a number or a boolean as text; empty for every other value. */
export function stringOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}

/** The first value whose text is not blank; empty if there is none. */
export function firstStringOf(...values: readonly unknown[]): string {
  for (const value of values) {
    const found = stringOf(value);
    if (found.trim() !== '') return found;
  }
  return '';
}

/** The value as a number; null if it is no finite number. A string such as "5" counts as a number. */
export function numberOf(value: unknown): number | null {
  const found = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof found === 'number' && Number.isFinite(found) ? found : null;
}

const MAX_DATE_MS = 8.64e15;

/** A time as ISO 8601 in UTC, in whole seconds; empty for null, and for a time that `Date` cannot represent. */
export function isoTime(ms: number | null): string {
  return ms !== null && Math.abs(ms) <= MAX_DATE_MS ? new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z') : '';
}

/** A time in ISO 8601. Without a time zone it is in UTC, since some programs leave the zone out. */
const MOMENT = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d{1,9})?) ?(Z|[+-]\d\d:?\d\d)?$/i;

/**
 * Normalizes a time that is written in ISO 8601, with `T` or a space, to UTC and whole seconds; empty for other values.
 */
export function isoTimeOf(value: unknown): string {
  const [, date, time, zone = 'Z'] = MOMENT.exec(stringOf(value)) ?? [];
  const ms = date === undefined ? Number.NaN : Date.parse(`${date}T${time}${zone}`);
  return isoTime(Number.isNaN(ms) ? null : ms);
}

const MAX_PARSED_JSON_LENGTH = 65_536;

/**
 * Parses a string that contains a JSON object or list; returns other values unchanged. Some programs send such strings,
 * and all do in HTTP forms.
 */
export function parseJsonIfString(value: unknown): unknown {
  if (typeof value !== 'string' || value.length > MAX_PARSED_JSON_LENGTH || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}
