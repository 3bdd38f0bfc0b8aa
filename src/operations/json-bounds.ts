import { KlatchError } from '../errors.ts';

/** Deeper than anything that an operation takes. */
const MAX_DEPTH = 32;
/** Room for the longest list that one takes: the 20,000 conversations of live.follow. */
const MAX_VALUES = 25_000;
/** A shorter text holds less of both than would take time. */
const SHORT = 1_024;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;

/**
 * What is wrong with a JSON text that is nested deeper, or holds more values, than any input of an operation, as a
 * sentence; null when nothing is. To be asked before it is parsed: a text of 1 MiB that is nothing but brackets takes
 * half a second to parse and as long to check, and everybody else waits for it.
 */
export function jsonExcess(text: string): string | null {
  if (text.length <= SHORT) return null;
  let depth = 0;
  let values = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) at = endOfString(text, at);
    else if (unit === COMMA) values += 1;
    // [ and {, ] and } differ in one bit.
    else if ((unit | 0x20) === 0x7b) [depth, values] = [depth + 1, values + 1];
    else if ((unit | 0x20) === 0x7d) depth -= 1;
    if (depth > MAX_DEPTH) return 'input: is nested too deep';
    if (values > MAX_VALUES) return `input: holds more than ${MAX_VALUES} values`;
  }
  return null;
}

/** Throws `invalid_input` for such a text. */
export function boundJson(text: string): void {
  const sentence = jsonExcess(text);
  if (sentence !== null) throw new KlatchError('invalid_input', { sentence });
}

/** Where the string that begins here ends; the end of the text where it does not. */
function endOfString(text: string, begin: number): number {
  for (let end = text.indexOf('"', begin + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}
