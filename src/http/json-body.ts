import { KlatchError } from '../errors.ts';

/** The text of a body. Throws `invalid_input` for what is not UTF-8. */
export function decodeUtf8(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch (cause) {
    throw new KlatchError('invalid_input', { sentence: 'The body is not valid utf-8', cause });
  }
}

/** The type of a Content-Type header without its parameters, lower case; empty when there is none. */
export function mediaType(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase();
}

/** The value of a JSON text, or a sentence that says where it stops being JSON, without quoting what stands there. */
export type ParsedJson =
  { readonly value: unknown; readonly problem?: undefined } | { readonly value?: undefined; readonly problem: string };

/** Parses JSON; raw control characters inside strings, which shell scripts put there, are taken as they are meant. */
export function parseJson(source: string): ParsedJson {
  try {
    return { value: JSON.parse(source) as unknown };
  } catch (error) {
    const repaired = repairControls(source);
    if (repaired === source) return { problem: problemOf(source, error) };
    try {
      return { value: JSON.parse(repaired) as unknown };
    } catch (error) {
      return { problem: problemOf(repaired, error) };
    }
  }
}

/** As many characters as a message may have at most; a million of them took half a second. */
const MAX_REPAIRED = 200_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;

/**
 * Escapes raw control characters inside strings. A loop and not a regular expression: one that matches strings looks for
 * the end of an unclosed one again from each quote within it, which took minutes for a body of 1 MiB.
 */
function repairControls(source: string): string {
  let repaired = '';
  let from = 0;
  let count = 0;
  let inString = false;
  for (let at = 0; at < source.length; at += 1) {
    const unit = source.charCodeAt(at);
    if (unit === QUOTE) inString = !inString;
    else if (unit === BACKSLASH && inString) at += 1;
    else if (unit < SPACE && inString) {
      count += 1;
      if (count > MAX_REPAIRED) return source;
      repaired += `${source.slice(from, at)}\\u${unit.toString(16).padStart(4, '0')}`;
      from = at + 1;
    }
  }
  return repaired + source.slice(from);
}

/** A text this long is not searched for its mistake: that parses it some twenty times. */
const MAX_SEARCHED = 65_536;

function problemOf(source: string, error: unknown): string {
  const offset = toldOffset(error, source.length) ?? (source.length > MAX_SEARCHED ? null : searchedOffset(source));
  if (offset === null) return 'The body is not valid JSON';
  if (offset >= source.length) return 'The body is not valid JSON: it ends too early';
  // An escaped line break was a real one before the repair.
  const lines = source.slice(0, offset).split(/\n|\\u000a/);
  return `The body is not valid JSON at line ${lines.length}, column ${lines.at(-1)!.length + 1}`;
}

/** Where V8 says that it stopped; null for those of its errors that quote the text instead. */
function toldOffset(error: unknown, length: number): number | null {
  const message = String(error);
  if (message.includes('Unexpected end')) return length;
  const position = /at position (\d+)/.exec(message)?.[1];
  return position === undefined ? null : Number(position);
}

/** The mistake stands behind the longest beginning that is JSON but for its end. */
function searchedOffset(source: string): number {
  let good = 0;
  let bad = source.length;
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (onlyEndsEarly(source.slice(0, middle))) good = middle;
    else bad = middle;
  }
  return good;
}

function onlyEndsEarly(beginning: string): boolean {
  try {
    JSON.parse(beginning);
    return true;
  } catch (error) {
    return toldOffset(error, beginning.length) === beginning.length;
  }
}
