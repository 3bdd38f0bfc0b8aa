import { coerceToArray, type Value } from '../../packages/hocon/src/index.ts';

/** Collects problems and warnings while values are read. All values are read, so that one run shows all problems. */
export interface Diagnostics {
  refuse(key: string, value: Value, sentence: string): void;
  /** Reports a value that is accepted but probably not intended. */
  warn(key: string, value: Value, sentence: string): void;
}

/** The type of a key's value: the rule for valid values, and how they are parsed. */
export interface ValueType<T> {
  /** The rest of the message "expected …", with bounds. */
  readonly expected: string;
  /** True: neither listings nor messages show the value. */
  readonly hidden: boolean;
  /**
   * True: a message may quote a wrong value, since nobody writes a secret as the value of such a key. Values of other
   * keys are not quoted: people write passwords, keys and whole URLs in place of a name.
   */
  readonly quotableInMessages: boolean;
  /** True: the value is a path, relative to the folder of the file that contains it. */
  readonly isPath: boolean;
  /** The type of a list's items; null: the type is no list. */
  readonly items: ValueType<unknown> | null;
  /** True: a single item may be written without the brackets of a list. */
  readonly acceptsOneItem?: boolean;
  /** The fields of an object; null: the type is no object. */
  readonly fields: Readonly<Record<string, KeySpec<unknown>>> | null;
  /**
   * Parses a value. Undefined: the value was refused and reported to `diagnostics`, or it is a placeholder, which
   * `readSettings` collects.
   */
  read(key: string, value: Value, diagnostics: Diagnostics): T | undefined;
}

/**
 * Whether a key must be set. `defaulted`: reference.conf has a default. `required`: without the key the server does not
 * start. `optional`: the key may be absent, and its value is then null.
 */
type Presence = 'defaulted' | 'required' | 'optional';

export interface KeySpec<T, P extends Presence = Presence> {
  readonly kind: ValueType<T>;
  readonly presence: P;
}

const PLACEHOLDER = /^<[A-Za-z][A-Za-z0-9 _-]*>$/;

/** True if a text is a placeholder such as `<SERVER_SECRET>`, as in the template of server.conf. */
function isAngleBracketPlaceholder(text: string): boolean {
  return PLACEHOLDER.test(text);
}

/** True if a value as a whole is a placeholder. This is checked before the value's type. */
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

/** True if a text contains a key or certificate in PEM. */
export function containsPemKey(text: string): boolean {
  return text.includes('-----BEGIN');
}

/** How a message describes a value. Values that may be secret are not quoted (see `quotableInMessages`). */
export function describeValue(value: Value, quotableInMessages: boolean): string {
  if (value.kind === 'object') return 'an object';
  if (value.kind === 'array') return 'a list';
  if (value.kind === 'null') return 'null';
  if (value.kind === 'string' && containsPemKey(value.text)) return 'a key, which is not shown';
  if (!quotableInMessages) return scalarText(value) === '' ? '""' : NOT_SHOWN;
  if (value.kind === 'number') return value.text;
  if (value.kind === 'boolean') return String(value.value);
  // A URL may contain a password before its @, and a token after ? or #.
  if (/[@?#]/.test(value.text)) return NOT_SHOWN;
  // The path of a URL is not shown: that of a webhook is its secret.
  const text = value.text.replace(/(:\/\/[^/]*\/).+$/s, '$1…');
  const characters = Array.from(text);
  const shortenedText =
    characters.length > MAX_SHOWN_CHARACTERS ? `${characters.slice(0, MAX_SHOWN_CHARACTERS).join('')}…` : text;
  return JSON.stringify(shortenedText);
}

/**
 * The result of the rule for a scalar. Without `value`, the value is refused; `expected` then replaces the type's own
 * description. `warning`: why an accepted value is probably not intended.
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

/** A type for one string, number or boolean. */
export function scalarValueType<T>(
  expected: string,
  judge: (value: Value) => ScalarResult<T>,
  options: ScalarOptions = {},
): ValueType<T> {
  const { hidden = false, quotableInMessages = false, isPath: path = false } = options;
  const read = (key: string, value: Value, diagnostics: Diagnostics): T | undefined => {
    if (isPlaceholder(value)) return undefined;
    const verdict = judge(value);
    if (verdict.value !== undefined) {
      if (verdict.warning !== undefined) diagnostics.warn(key, value, verdict.warning);
      return verdict.value;
    }
    const refusalReason = verdict.refusalReason === undefined ? '' : `: ${verdict.refusalReason}`;
    diagnostics.refuse(
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

/** The bounds for the length of a list, and a rule for all its items together, which returns the problem or null. */
interface ListOptions<T> {
  readonly minItems?: number;
  readonly maxItems: number;
  readonly rule?: (items: readonly T[]) => string | null;
}

/** A type for a list. A problem with an item has the item's position, and a key with the item's index. */
export function list<T>(expected: string, items: ValueType<T>, options: ListOptions<T>): ValueType<readonly T[]> {
  const { minItems: min = 0, maxItems: max, rule } = options;
  const read = (key: string, value: Value, diagnostics: Diagnostics): readonly T[] | undefined => {
    if (isPlaceholder(value)) return undefined;
    const found = coerceToArray(value);
    if (found === null) {
      diagnostics.refuse(key, value, `expected ${expected}, got ${describeValue(value, items.quotableInMessages)}`);
      return undefined;
    }
    if (found.items.length < min || found.items.length > max) {
      diagnostics.refuse(key, value, `expected a list of ${min} to ${max} items, got ${found.items.length}`);
      return undefined;
    }
    const results = found.items.map((item, index) => items.read(`${key}[${index}]`, item, diagnostics));
    const good = results.filter((result) => result !== undefined);
    if (good.length < results.length) return undefined;
    const wrong = rule?.(good) ?? null;
    if (wrong === null) return good;
    diagnostics.refuse(key, value, wrong);
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

/** A type for one item or a list of items; the result is always a list. */
export function oneOrList<T>(what: string, items: ValueType<T>, options: ListOptions<T>): ValueType<readonly T[]> {
  const several = list(`${what}, or a list of up to ${options.maxItems}`, items, { minItems: 1, ...options });
  const read = (key: string, value: Value, diagnostics: Diagnostics): readonly T[] | undefined => {
    if (isPlaceholder(value)) return undefined;
    if (coerceToArray(value) !== null) return several.read(key, value, diagnostics);
    const one = items.read(key, value, diagnostics);
    return one === undefined ? undefined : [one];
  };
  return { ...several, acceptsOneItem: true, read };
}

/** The rule for a key's value as text for the documents, with the rule for the items of a list. */
export function valueRuleText({ expected, items }: ValueType<unknown>): string {
  return items === null ? expected : `${expected}, each ${items.expected}`;
}

/** A type for an object. The fields in `optional` may be absent, and are then null. */
export function recordValueType<T extends object>(
  expected: string,
  kinds: { readonly [F in keyof T]: ValueType<Exclude<T[F], null>> },
  optional: readonly (keyof T)[] = [],
): ValueType<T> {
  const names = Object.keys(kinds) as (keyof T & string)[];
  const hidden = names.some((name) => kinds[name].hidden);
  const presenceOf = (name: keyof T): Presence => (optional.includes(name) ? 'optional' : 'required');
  const fields = Object.fromEntries(names.map((name) => [name, { kind: kinds[name], presence: presenceOf(name) }]));
  const read = (key: string, value: Value, diagnostics: Diagnostics): T | undefined => {
    if (isPlaceholder(value)) return undefined;
    if (value.kind !== 'object') {
      diagnostics.refuse(key, value, `expected ${expected}, got ${describeValue(value, false)}`);
      return undefined;
    }
    const result: Partial<T> = {};
    for (const name of names) {
      const field = value.entries.get(name);
      const path = `${key}.${name}`;
      if (field !== undefined) result[name] = kinds[name].read(path, field, diagnostics);
      else if (optional.includes(name)) result[name] = null as T[typeof name];
      else diagnostics.refuse(path, value, `is missing: expected ${kinds[name].expected}`);
    }
    return names.every((name) => result[name] !== undefined) ? (result as T) : undefined;
  };
  return { expected, hidden, quotableInMessages: false, isPath: false, items: null, fields, read };
}
