import { resolve, dirname } from 'node:path';
import { durationMs, sizeBytes, type Value } from '../../packages/hocon/src/index.ts';
import { containsPemKey, scalarValueType, scalarText } from './value-types.ts';
import type { ValueType, ScalarResult } from './value-types.ts';
import { isJson, googleKeyProblem } from './keys/google-key.ts';

/** The smallest and the largest accepted value: milliseconds, bytes or a plain number, by the type. */
interface Bounds {
  readonly min: number;
  readonly max: number;
}

/** The units in which bounds of durations are written, in milliseconds. */
export const MS = { second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;

/** The units in which bounds of sizes are written, in bytes. */
export const BYTES = { kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3 } as const;

const DURATION_UNITS: readonly (readonly [string, number])[] = [
  ['d', MS.day],
  ['h', MS.hour],
  ['m', MS.minute],
  ['s', MS.second],
];
const SIZE_UNITS: readonly (readonly [string, number])[] = [
  [' GiB', BYTES.gib],
  [' MiB', BYTES.mib],
  [' KiB', BYTES.kib],
];

/** Formats a number with the largest unit that divides it, as an administrator would write it. */
function formatWithLargestUnit(
  amount: number,
  units: readonly (readonly [string, number])[],
  baseUnit: string,
): string {
  const [name, factor] = units.find(([, size]) => amount >= size && amount % size === 0) ?? [baseUnit, 1];
  return `${amount / factor}${name}`;
}

const NOT_HEADER_SAFE = 'holds characters that no header of HTTP carries: only printable ASCII gets through';
const ENCLOSED_IN_QUOTES_PATTERN =
  /^(?:"[^]*"|'[^]*'|`[^]*`|[\u201c-\u201e][^]*[\u201c-\u201e]|[\u2018\u2019][^]*[\u2018\u2019]|\u00ab[^]*\u00bb)$/;

/** The warning about a text that is accepted but probably not intended; null: there is nothing to warn of. */
function doubtfulTextWarning(text: string): string | null {
  if (text.trim() === '') return 'is blank: it holds nothing but white space';
  if (text.length > 1 && ENCLOSED_IN_QUOTES_PATTERN.test(text)) {
    return 'begins and ends with a quotation mark that is part of the value: only one pair of double quotes is taken off';
  }
  return null;
}

const CONTROL = /\p{Cc}/u;
const UNPAIRED_SURROGATE = /\p{Cs}/u;

/**
 * The options of a text. `minCharacters`, `maxCharacters`: its length in code points. `pattern`: a further rule, which
 * `expected` has to mention.
 */
interface TextOptions {
  readonly minCharacters: number;
  readonly maxCharacters: number;
  readonly hidden?: boolean;
  readonly quotableInMessages?: boolean;
  readonly pattern?: RegExp;
  /**
   * True: the text is sent in an HTTP header, which can have only printable ASCII, so other characters cause a warning.
   */
  readonly warnIfNotHeaderSafe?: boolean;
}

/**
 * The type of one line of text. A number is read as the text that was written, so that a name of digits needs no
 * quotes.
 */
export function text(expected: string, options: TextOptions): ValueType<string> {
  const {
    minCharacters: min,
    maxCharacters: max,
    hidden = false,
    quotableInMessages: isQuotable = false,
    pattern,
    warnIfNotHeaderSafe = false,
  } = options;
  const judge = (value: Value): ScalarResult<string> => {
    const found = scalarText(value);
    if (found === null) return {};
    if (CONTROL.test(found)) return { refusalReason: 'it holds a control character' };
    if (UNPAIRED_SURROGATE.test(found)) return { refusalReason: 'it holds half of a surrogate pair' };
    const length = Array.from(found).length;
    if (length < min) return { refusalReason: length === 0 ? 'it is empty' : `it has ${length} characters` };
    if (length > max) return { refusalReason: `it has ${length} characters` };
    if (pattern !== undefined && !pattern.test(found)) return {};
    const warning =
      warnIfNotHeaderSafe && !/^[\x21-\x7e]+(?: +[\x21-\x7e]+)*$/.test(found)
        ? NOT_HEADER_SAFE
        : doubtfulTextWarning(found);
    return { value: found, ...(warning === null ? {} : { warning }) };
  };
  return scalarValueType(expected, judge, { hidden, quotableInMessages: isQuotable });
}

/** The type of a password, which is never shown. It may be empty, and contain every character but NUL. */
export function password(expected: string): ValueType<string> {
  const judge = (value: Value): ScalarResult<string> => {
    const found = scalarText(value);
    if (found === null) return {};
    if (found.includes('\0')) return { refusalReason: 'it holds a NUL character' };
    const warning = found === '' ? null : doubtfulTextWarning(found);
    return { value: found, ...(warning === null ? {} : { warning }) };
  };
  return scalarValueType(expected, judge, { hidden: true });
}

/** A type for numbers and single words. They contain no secrets, so messages may quote them. */
function nonSecretScalar<T>(expected: string, judge: (value: Value) => ScalarResult<T>): ValueType<T> {
  return scalarValueType(expected, judge, { quotableInMessages: true });
}

/** The type of a value that is one of a few words. */
export function choice<const T extends string>(words: readonly T[]): ValueType<T> {
  const quoted = words.map((word) => `"${word}"`);
  const expected = `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`;
  return nonSecretScalar(expected, (value) => {
    const word = words.find((each) => each === scalarText(value));
    return word === undefined ? {} : { value: word };
  });
}

const BOOLEAN_SPELLINGS = new Map([
  ['true', true],
  ['yes', true],
  ['on', true],
  ['false', false],
  ['no', false],
  ['off', false],
]);

/**
 * The type of `true` or `false`, also in HOCON's other spellings and as a text, since values of environment variables
 * are texts.
 */
export function flag(): ValueType<boolean> {
  return nonSecretScalar('true or false', (value) => {
    const found = BOOLEAN_SPELLINGS.get(scalarText(value) ?? '');
    return found === undefined ? {} : { value: found };
  });
}

/**
 * The number in a value that is a number, or a text of digits (from an environment variable); null for other values.
 */
function numberOf(value: Value): number | null {
  if (value.kind === 'number') return value.number;
  return value.kind === 'string' && /^-?\d{1,15}$/.test(value.text) ? Number(value.text) : null;
}

/** The type of a whole number within bounds. */
export function integer({ min, max }: Bounds): ValueType<number> {
  return nonSecretScalar(`a whole number from ${min} to ${max}`, (value) => {
    const found = numberOf(value);
    return found !== null && Number.isInteger(found) && found >= min && found <= max ? { value: found } : {};
  });
}

/** The type of a TCP port. `min` 0 also allows 0, which means "any free port". */
export function port(min: 0 | 1): ValueType<number> {
  return nonSecretScalar(`a port number from ${min} to 65535`, (value) => {
    const found = numberOf(value);
    // The value is no number at all, so the message does not mention the bounds.
    if (found === null) return { expected: 'a port number' };
    return Number.isInteger(found) && found >= min && found <= 65_535 ? { value: found } : {};
  });
}

/**
 * The type of a duration; the result is in milliseconds. HOCON reads a number without a unit as milliseconds. It is
 * refused here, because a person who writes `timeout = 10` means seconds.
 */
export function duration({ min, max }: Bounds): ValueType<number> {
  const bound = (ms: number): string => formatWithLargestUnit(ms, DURATION_UNITS, 'ms').replace(/^0ms$/, '0s');
  return nonSecretScalar(`a duration from ${bound(min)} to ${bound(max)}`, (value) => {
    if (value.kind === 'number' || (value.kind === 'string' && numberOf(value) !== null)) {
      return { refusalReason: 'it needs a unit, as in 10s' };
    }
    const found = durationMs(value);
    return found !== null && found >= min && found <= max ? { value: Math.round(found) } : {};
  });
}

/** The type of a size; the result is in bytes. A number without a unit means bytes. */
export function size({ min, max }: Bounds): ValueType<number> {
  const bound = (bytes: number): string => formatWithLargestUnit(bytes, SIZE_UNITS, bytes === 1 ? ' byte' : ' bytes');
  return nonSecretScalar(`a size from ${bound(min)} to ${bound(max)}`, (value) => {
    const found = sizeBytes(value);
    return found !== null && Number.isInteger(found) && found >= min && found <= max ? { value: found } : {};
  });
}

/** The absolute path in a setting, and the setting's value, whose position later messages contain. */
export interface LocatedPath {
  readonly path: string;
  readonly value: Value;
}

/** Makes a path absolute. A relative path is relative to the folder of the configuration file that contains it. */
export function resolvePath(value: Value, path: string): string {
  return resolve(dirname(value.origin.file), path);
}

/**
 * The type of the path of a file or folder. The code that uses the path checks that it exists. `isKeyFile`: the file
 * contains a key, so people may write the key itself here, and messages do not quote the value.
 */
export function location(expected: string, { isKeyFile = false } = {}): ValueType<LocatedPath> {
  const judge = (value: Value): ScalarResult<LocatedPath> => {
    const found = value.kind === 'string' ? value.text : null;
    if (found === null) return {};
    if (containsPemKey(found)) return { refusalReason: 'write the key into a file, and the path of that file here' };
    if (found.trim() === '') return { refusalReason: 'it is empty' };
    if (found.includes('\0')) return { refusalReason: 'it holds a NUL character' };
    if (/[\r\n]/.test(found)) return { refusalReason: 'it holds a line end' };
    return { value: { path: resolvePath(value, found), value }, ...doubtfulPathWarning(found) };
  };
  return scalarValueType(expected, judge, { isPath: true, quotableInMessages: !isKeyFile });
}

function doubtfulPathWarning(path: string): { warning?: string } {
  const warning = /^~[\w.-]*(?:\/|$)/.test(path)
    ? 'begins with ~, which is not a home directory here: write the path in full'
    : doubtfulTextWarning(path);
  return warning === null ? {} : { warning };
}

/**
 * The type of a service account: the path of its file, or its JSON in one or more lines. The path is relative to the
 * folder of the configuration file that contains it. The value is never shown, since it may be a key.
 */
export function serviceAccountPathOrJson(expected: string, maxCharacters: number): ValueType<LocatedPath> {
  const judge = (value: Value): ScalarResult<LocatedPath> => {
    const found = value.kind === 'string' ? value.text : null;
    if (found === null) return {};
    if (found.trim() === '') return { refusalReason: 'it is empty' };
    if (found.length > maxCharacters) return { refusalReason: `it has ${found.length} characters` };
    const unfit = googleKeyProblem(found);
    if (unfit !== null) return { refusalReason: unfit };
    if (isJson(found)) return { value: { path: found.trim(), value } };
    if (CONTROL.test(found)) return { refusalReason: 'it holds a control character' };
    return { value: { path: resolvePath(value, found), value }, ...doubtfulPathWarning(found) };
  };
  return scalarValueType(expected, judge, { hidden: true });
}

const COMMON_SECRET_WORDS = /change-?me|password|passwort|secret|klatch|example|server|default|qwerty|letmein|admin/gi;

/**
 * Why a secret is easy to guess; null: it is not. Does not measure entropy, but finds texts that people type only to
 * satisfy a prompt. `klatch setup` creates 32 random bytes. Of texts with 32 random hexadecimal digits, fewer than one
 * in 10^9 are refused.
 */
function secretWeakness(secret: string): string | null {
  const characters = Array.from(secret);
  if (new Set(characters).size < 6) return 'it repeats a few characters';
  if (/^(.{1,16}?)\1+.?$/su.test(secret)) return 'it repeats itself';
  const steps = characters.slice(1).map((c, i) => c.codePointAt(0)! - characters[i]!.codePointAt(0)!);
  if (steps.filter((step) => step === 1 || step === -1).length > steps.length / 2) return 'it counts up or down';
  return Array.from(secret.replace(COMMON_SECRET_WORDS, '')).length < 16 ? 'it is made of common words' : null;
}

/** The type of the server secret: long enough, and not easy to guess (see `secretWeakness`). */
export function unguessableServerSecret(minCharacters: number): ValueType<string> {
  const expected = `at least ${minCharacters} characters that nobody can guess`;
  const judge = (value: Value): ScalarResult<string> => {
    const found = scalarText(value);
    if (found === null) return {};
    const length = Array.from(found).length;
    if (length < minCharacters) return { refusalReason: `it has ${length}` };
    const weak = secretWeakness(found);
    return weak === null ? { value: found } : { refusalReason: `${weak}; "openssl rand -base64 32" makes a good one` };
  };
  return scalarValueType(expected, judge, { hidden: true });
}
