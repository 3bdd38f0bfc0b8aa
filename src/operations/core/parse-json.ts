import { KlatchError } from '../../errors.ts';
import { jsonLimitViolation, type JsonLimits } from './json-limits.ts';

/** The value of a JSON text; or a sentence that says where the text stops being JSON, without quoting it. */
type ParsedJson =
  { readonly value: unknown; readonly problem?: undefined } | { readonly value?: undefined; readonly problem: string };

/**
 * Parses JSON from outside. No interface calls JSON.parse itself, so that none forgets the limits. Throws
 * `invalid_input`, before parsing, for a text that exceeds the limits; the error begins with `subject`.
 */
export function parseJson(source: string, limits: JsonLimits, subject = 'input:'): ParsedJson {
  const violation = jsonLimitViolation(source, limits);
  if (violation !== null) throw new KlatchError('invalid_input', { sentence: `${subject} ${violation}` });
  try {
    return { value: JSON.parse(source) as unknown };
  } catch (error) {
    return { problem: jsonSyntaxProblem(source, error) };
  }
}

/** As `parseJson`, but accepts raw control characters inside strings, which shell scripts put there. */
export function parseJsonRepairingControls(source: string, limits: JsonLimits, subject?: string): ParsedJson {
  // The text is repaired before the first attempt to parse it, since a failed attempt would take as long again.
  return parseJson(HAS_CONTROLS.test(source) ? repairControls(source) : source, limits, subject);
}

/**
 * Matches any control character, also line breaks and tabs between strings, which are valid. `repairControls` changes
 * only control characters in strings.
 */
// oxlint-disable-next-line no-control-regex
const HAS_CONTROLS = /[\u0000-\u001f]/;
/** At most this many control characters are repaired: the most characters that a message can have. */
const MAX_REPAIRED_CONTROLS = 200_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const ESCAPE_BYTES = 6;
const ESCAPES = Array.from({ length: SPACE }, (_, unit) => Buffer.from(`\\u${unit.toString(16).padStart(4, '0')}`));

/**
 * Escapes raw control characters inside the string literals of a JSON text. It works on bytes, since joining 200,000
 * pieces of text took 100 ms. It uses a loop, because a regular expression for string literals took minutes for 1 MiB
 * of unclosed quotes.
 */
function repairControls(source: string): string {
  const bytes = Buffer.from(source);
  const offsets = controlOffsetsInStrings(bytes);
  if (offsets.length === 0 || offsets.length > MAX_REPAIRED_CONTROLS) return source;
  const repaired = Buffer.allocUnsafe(bytes.length + offsets.length * (ESCAPE_BYTES - 1));
  let copyFrom = 0;
  let repairedLength = 0;
  for (const at of offsets) {
    repairedLength += bytes.copy(repaired, repairedLength, copyFrom, at);
    repairedLength += ESCAPES[bytes[at]!]!.copy(repaired, repairedLength);
    copyFrom = at + 1;
  }
  repairedLength += bytes.copy(repaired, repairedLength, copyFrom);
  return repaired.toString('utf8', 0, repairedLength);
}

function controlOffsetsInStrings(bytes: Buffer): number[] {
  const offsets: number[] = [];
  let isInString = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at]!;
    if (byte === QUOTE) isInString = !isInString;
    else if (byte === BACKSLASH && isInString) at += 1;
    else if (byte < SPACE && isInString) {
      offsets.push(at);
      if (offsets.length > MAX_REPAIRED_CONTROLS) break;
    }
  }
  return offsets;
}

/** The mistake in a longer text is not searched for: the search parses the text about fourteen times. */
const MAX_BISECTED_LENGTH = 16_384;

function jsonSyntaxProblem(source: string, error: unknown): string {
  const offset =
    reportedOffset(error, source.length) ?? (source.length > MAX_BISECTED_LENGTH ? null : findErrorOffset(source));
  if (offset === null) return 'The body is not valid JSON';
  if (offset >= source.length) return 'The body is not valid JSON: it ends too early';
  // `\u000a` counts as a line break, since the repair may have escaped one.
  const lines = source.slice(0, offset).split(/\n|\\u000a/);
  return `The body is not valid JSON at line ${lines.length}, column ${lines.at(-1)!.length + 1}`;
}

/** The position of the mistake in V8's error; null: the error has none. */
function reportedOffset(error: unknown, textLength: number): number | null {
  const message = String(error);
  if (message.includes('Unexpected end')) return textLength;
  const position = /at position (\d+)/.exec(message)?.[1];
  return position === undefined ? null : Number(position);
}

/** The position of the mistake: the length of the longest beginning that is JSON if it is continued. */
function findErrorOffset(source: string): number {
  let validPrefixLength = 0;
  let invalidPrefixLength = source.length;
  while (invalidPrefixLength - validPrefixLength > 1) {
    const middle = (validPrefixLength + invalidPrefixLength) >> 1;
    if (isJsonPrefix(source.slice(0, middle))) validPrefixLength = middle;
    else invalidPrefixLength = middle;
  }
  return validPrefixLength;
}

function isJsonPrefix(beginning: string): boolean {
  try {
    JSON.parse(beginning);
    return true;
  } catch (error) {
    return reportedOffset(error, beginning.length) === beginning.length;
  }
}
