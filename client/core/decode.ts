import { ProtocolError } from './chat-error.ts';

/** Returns a value from elsewhere unchanged, unknown fields included, with its type; or throws DecodeError. */
export type Decoder<Value> = (value: unknown) => Value;

/** The type that a decoder returns. */
export type Decoded<D extends Decoder<unknown>> = ReturnType<D>;

/** A value does not have the expected shape; `message` names the place and the expectation, and quotes no value. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
  readonly #path: string;
  readonly #expected: string;

  constructor(expected: string, path = '') {
    super(`${path === '' ? 'the value' : path} should be ${expected}`);
    this.#path = path;
    this.#expected = expected;
  }

  /** The same error with a longer path: `step` is the name or index of this value in its parent. */
  withPathPrefix(step: string): DecodeError {
    return new DecodeError(this.#expected, this.#path === '' ? step : `${step}.${this.#path}`);
  }
}

/** Accepts any value, for answers whose content the caller ignores. */
export const anything: Decoder<unknown> = (value) => value;

export const string: Decoder<string> = (value) => {
  if (typeof value === 'string') return value;
  throw new DecodeError('a text');
};

export const nonEmptyString: Decoder<string> = (value) => {
  if (typeof value === 'string' && value !== '') return value;
  throw new DecodeError('a text that is not empty');
};

export const boolean: Decoder<boolean> = (value) => {
  if (typeof value === 'boolean') return value;
  throw new DecodeError('true or false');
};

export const number: Decoder<number> = (value) => {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw new DecodeError('a number');
};

export const integer = integerFrom(Number.MIN_SAFE_INTEGER, 'a whole number');
export const naturalNumber = integerFrom(0, 'a whole number, 0 or more');
export const positiveInteger = integerFrom(1, 'a whole number above 0');

function integerFrom(min: number, expected: string): Decoder<number> {
  return (value) => {
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min) return value;
    throw new DecodeError(expected);
  };
}

/** Accepts only the value `only`. */
export function constant<const Value extends string | number | boolean>(only: Value): Decoder<Value> {
  return (value) => {
    if (value === only) return only;
    throw new DecodeError(JSON.stringify(only));
  };
}

export function nullable<Value>(decode: Decoder<Value>): Decoder<Value | null> {
  return (value) => (value === null ? null : decode(value));
}

export function arrayOf<Value>(decode: Decoder<Value>): Decoder<Value[]> {
  return (value) => {
    if (!Array.isArray(value)) throw new DecodeError('a list');
    value.forEach((each, index) => decodeChild(String(index), decode, each));
    return value as Value[];
  };
}

/** An object with any names, whose values have one type. */
export function recordOf<Value>(decode: Decoder<Value>): Decoder<Record<string, Value>> {
  return (value) => {
    const record = requireObject(value);
    for (const [name, each] of Object.entries(record)) decodeChild(name, decode, each);
    return record as Record<string, Value>;
  };
}

/** A field that may be absent. */
interface OptionalDecoder<Value> extends Decoder<Value | undefined> {
  readonly isOptional: true;
}

export function optional<Value>(decode: Decoder<Value>): OptionalDecoder<Value> {
  const decodeField = (value: unknown): Value | undefined => (value === undefined ? undefined : decode(value));
  return Object.assign(decodeField, { isOptional: true } as const);
}

type Fields = Readonly<Record<string, Decoder<unknown>>>;
type OptionalNames<F extends Fields> = {
  [Name in keyof F]: F[Name] extends OptionalDecoder<unknown> ? Name : never;
}[keyof F];
type ObjectOf<F extends Fields> = {
  readonly [Name in Exclude<keyof F, OptionalNames<F>>]: Decoded<F[Name]>;
} & {
  readonly [Name in OptionalNames<F>]?: Decoded<F[Name]>;
};

/** An object that has at least these fields; the decoder does not remove others. */
export function objectWithAtLeast<F extends Fields>(fields: F): Decoder<ObjectOf<F>> {
  const decoders = Object.entries(fields);
  return (value) => {
    const record = requireObject(value);
    for (const [name, decode] of decoders) decodeChild(name, decode, record[name]);
    return record as ObjectOf<F>;
  };
}

/** The value with its type, or null where it has another shape. */
export function decodeOrNull<Value>(decode: Decoder<Value>, value: unknown): Value | null {
  try {
    return decode(value);
  } catch (error) {
    if (error instanceof DecodeError) return null;
    throw error;
  }
}

/** Returns a value that a server sent, with its type. If it has another shape, throws ProtocolError with `sentence`. */
export function decodeReceived<Value>(decode: Decoder<Value>, value: unknown, sentence: string): Value {
  try {
    return decode(value);
  } catch (cause) {
    if (cause instanceof DecodeError) throw new ProtocolError(sentence, { cause });
    throw cause;
  }
}

function requireObject(value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new DecodeError('an object');
}

/** Builds the path only while a failure propagates, so that well-formed values cost no strings. */
function decodeChild<Value>(step: string, decode: Decoder<Value>, value: unknown): Value {
  try {
    return decode(value);
  } catch (error) {
    throw error instanceof DecodeError ? error.withPathPrefix(step) : error;
  }
}
