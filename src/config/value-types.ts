import { coerceToArray, type Value } from '../../packages/hocon/src/index.ts';

/** Where mistakes go while values are read; every value is read, so that all mistakes show at once. */
export interface Diagnostics {
  refuse(key: string, value: Value, sentence: string): void;
  /** For what is accepted and hardly meant. */
  warn(key: string, value: Value, sentence: string): void;
}

/** What a key's value has to be, and how it becomes a typed one. */
export interface ValueType<T> {
  /** Completes "expected …", bounds included. */
  readonly expected: string;
  /** True: the value appears in no listing, and in no message. */
  readonly hidden: boolean;
  /**
   * True: a wrong value may be quoted in a message, since no secret is ever meant for such a key. Nothing else is
   * quoted: people put passwords, keys and whole addresses where a name belongs.
   */
  readonly quotableInMessages: boolean;
  /** True: a file name, relative to the folder of the file it stands in. */
  readonly isPath: boolean;
  /** The kind of a list's items. */
  readonly items: ValueType<unknown> | null;
  /** True: an item may stand without its list. */
  readonly acceptsOneItem?: boolean;
  /** The fields of an object. */
  readonly fields: Readonly<Record<string, KeySpec<unknown>>> | null;
  /** Undefined: refused (told to `reading`), or a placeholder, which is collected apart. */
  read(key: string, value: Value, reading: Diagnostics): T | undefined;
}

/**
 * `preset`: the default stands in reference.conf. `required`: without it the server is not configured.
 * `optional`: may be absent, then it reads as null.
 */
type Presence = 'defaulted' | 'required' | 'optional';

/** One row of the table of keys. */
export interface KeySpec<T, P extends Presence = Presence> {
  readonly kind: ValueType<T>;
  readonly presence: P;
}

const PLACEHOLDER = /^<[A-Za-z][A-Za-z0-9 _-]*>$/;

/** Whether a text is a placeholder such as `<SERVER_SECRET>` (rule of the packages' templates). */
function isAngleBracketPlaceholder(text: string): boolean {
  return PLACEHOLDER.test(text);
}

/** Whether a whole value is a placeholder, which is asked before its type is looked at. */
export function isPlaceholder(value: Value): boolean {
  return value.kind === 'string' && isAngleBracketPlaceholder(value.text);
}

/** The text of a string, number or boolean as it was written; null for anything else. */
export function scalarText(value: Value): string | null {
  if (value.kind === 'string' || value.kind === 'number') return value.text;
  return value.kind === 'boolean' ? String(value.value) : null;
}

const MAX_SHOWN_CHARACTERS = 60;
const NOT_SHOWN = 'a value that is not shown';

/** Whether a text holds a key in PEM. */
export function containsPemKey(text: string): boolean {
  return text.includes('-----BEGIN');
}

/** How a message names what it found. What may be a secret is not repeated: see `quotableInMessages`. */
export function describeValue(value: Value, quotableInMessages: boolean): string {
  if (value.kind === 'object') return 'an object';
  if (value.kind === 'array') return 'a list';
  if (value.kind === 'null') return 'null';
  if (value.kind === 'string' && containsPemKey(value.text)) return 'a key, which is not shown';
  if (!quotableInMessages) return scalarText(value) === '' ? '""' : NOT_SHOWN;
  if (value.kind === 'number') return value.text;
  if (value.kind === 'boolean') return String(value.value);
  // An address may hold a password before its @, and a token behind ? or #.
  if (/[@?#]/.test(value.text)) return NOT_SHOWN;
  // The path of a webhook's address is its secret.
  const text = value.text.replace(/(:\/\/[^/]*\/).+$/s, '$1…');
  const characters = Array.from(text);
  const cut =
    characters.length > MAX_SHOWN_CHARACTERS ? `${characters.slice(0, MAX_SHOWN_CHARACTERS).join('')}…` : text;
  return JSON.stringify(cut);
}

/**
 * What a scalar's rule says: a value, else it is refused. `expected` stands in for the kind's own words. `warning` says
 * what is odd about a value that is accepted.
 */
export interface ScalarResult<T> {
  readonly value?: T;
  readonly warning?: string;
  readonly expected?: string;
  readonly refusalReason?: string;
}

interface ScalarOptions {
  readonly hidden?: boolean;
  readonly quotableInMessages?: boolean;
  readonly isPath?: boolean;
}

/** A kind for one string, number or boolean. */
export function scalar<T>(
  expected: string,
  judge: (value: Value) => ScalarResult<T>,
  options: ScalarOptions = {},
): ValueType<T> {
  const { hidden = false, quotableInMessages = false, isPath: path = false } = options;
  const read = (key: string, value: Value, reading: Diagnostics): T | undefined => {
    if (isPlaceholder(value)) return undefined;
    const verdict = judge(value);
    if (verdict.value !== undefined) {
      if (verdict.warning !== undefined) reading.warn(key, value, verdict.warning);
      return verdict.value;
    }
    const refusalReason = verdict.refusalReason === undefined ? '' : `: ${verdict.refusalReason}`;
    reading.refuse(
      key,
      value,
      `expected ${verdict.expected ?? expected}, got ${describeValue(value, quotableInMessages)}${refusalReason}`,
    );
    return undefined;
  };
  return {
    expected,
    hidden,
    quotableInMessages: quotableInMessages && !hidden,
    isPath: path,
    items: null,
    fields: null,
    read,
  };
}

/** Bounds of a list, and a rule over all of its items: null, or what is wrong with them together. */
interface ListOptions<T> {
  readonly min?: number;
  readonly max: number;
  readonly rule?: (items: readonly T[]) => string | null;
}

/** A kind for a list; mistakes are told at the item, with its index in the key. */
export function list<T>(expected: string, items: ValueType<T>, options: ListOptions<T>): ValueType<readonly T[]> {
  const { min = 0, max, rule } = options;
  const read = (key: string, value: Value, reading: Diagnostics): readonly T[] | undefined => {
    if (isPlaceholder(value)) return undefined;
    const found = coerceToArray(value);
    if (found === null) {
      reading.refuse(key, value, `expected ${expected}, got ${describeValue(value, items.quotableInMessages)}`);
      return undefined;
    }
    if (found.items.length < min || found.items.length > max) {
      reading.refuse(key, value, `expected a list of ${min} to ${max} items, got ${found.items.length}`);
      return undefined;
    }
    const results = found.items.map((item, index) => items.read(`${key}[${index}]`, item, reading));
    const good = results.filter((result) => result !== undefined);
    if (good.length < results.length) return undefined;
    const wrong = rule?.(good) ?? null;
    if (wrong === null) return good;
    reading.refuse(key, value, wrong);
    return undefined;
  };
  return {
    expected,
    hidden: items.hidden,
    quotableInMessages: items.quotableInMessages,
    isPath: false,
    items,
    fields: null,
    read,
  };
}

/** A kind for one item or a list of them, which it comes out as. */
export function oneOrList<T>(what: string, items: ValueType<T>, options: ListOptions<T>): ValueType<readonly T[]> {
  const several = list(`${what}, or a list of up to ${options.max}`, items, { min: 1, ...options });
  const read = (key: string, value: Value, reading: Diagnostics): readonly T[] | undefined => {
    if (isPlaceholder(value)) return undefined;
    if (coerceToArray(value) !== null) return several.read(key, value, reading);
    const one = items.read(key, value, reading);
    return one === undefined ? undefined : [one];
  };
  return { ...several, acceptsOneItem: true, read };
}

/** The rule for a key's value in words, for documents: what a list may hold is part of it. */
export function valueRuleText({ expected, items }: ValueType<unknown>): string {
  return items === null ? expected : `${expected}, each ${items.expected}`;
}

/** A kind for an object; fields that are named in `optional` may be absent, and read as null then. */
export function record<T extends object>(
  expected: string,
  kinds: { readonly [F in keyof T]: ValueType<Exclude<T[F], null>> },
  optional: readonly (keyof T)[] = [],
): ValueType<T> {
  const names = Object.keys(kinds) as (keyof T & string)[];
  const hidden = names.some((name) => kinds[name].hidden);
  const presenceOf = (name: keyof T): Presence => (optional.includes(name) ? 'optional' : 'required');
  const fields = Object.fromEntries(names.map((name) => [name, { kind: kinds[name], presence: presenceOf(name) }]));
  const read = (key: string, value: Value, reading: Diagnostics): T | undefined => {
    if (isPlaceholder(value)) return undefined;
    if (value.kind !== 'object') {
      reading.refuse(key, value, `expected ${expected}, got ${describeValue(value, false)}`);
      return undefined;
    }
    const result: Partial<T> = {};
    for (const name of names) {
      const field = value.entries.get(name);
      const path = `${key}.${name}`;
      if (field !== undefined) result[name] = kinds[name].read(path, field, reading);
      else if (optional.includes(name)) result[name] = null as T[typeof name];
      else reading.refuse(path, value, `is missing: expected ${kinds[name].expected}`);
    }
    return names.every((name) => result[name] !== undefined) ? (result as T) : undefined;
  };
  return { expected, hidden, quotableInMessages: false, isPath: false, items: null, fields, read };
}
