import { KlatchError } from '../../errors.ts';

const NOT_WHITE_SPACE = /[^\p{White_Space}\uFEFF]/u;

const invalidInput = (sentence: string): KlatchError => new KlatchError('invalid_input', { sentence });

/**
 * Checks the text of a message and returns it. Returns an empty text if the message has files and only white space.
 * Throws `too_large` and `invalid_input`.
 */
export function checkMessageText(
  text: string,
  maxCodePoints: number,
  { hasAttachments = false }: { hasAttachments?: boolean } = {},
): string {
  // A text has at most as many code points as code units, so most texts need no counting.
  const length = text.length > maxCodePoints ? countCodePoints(text) : 0;
  if (length > maxCodePoints) {
    const sentence = `text: has ${length} characters (code points), at most ${maxCodePoints} are allowed`;
    throw new KlatchError('too_large', { sentence });
  }
  if (!NOT_WHITE_SPACE.test(text)) {
    if (hasAttachments) return '';
    throw invalidInput('text: must hold something other than white space');
  }
  if (!text.isWellFormed()) throw invalidInput('text: is not valid Unicode (it holds half of a surrogate pair)');
  if (text.includes('\u0000')) throw invalidInput('text: must not hold the character NUL');
  return text;
}

/** The upper six bits of the first and second code unit of a surrogate pair. */
const HIGH_SURROGATE = 0xd800;
const LOW_SURROGATE = 0xdc00;

/** The number of code points in a text. An emoji beyond the basic plane is one code point. */
export function countCodePoints(text: string): number {
  let count = text.length;
  for (let at = 0; at < text.length; at += 1) {
    if ((text.charCodeAt(at) & 0xfc00) === HIGH_SURROGATE && (text.charCodeAt(at + 1) & 0xfc00) === LOW_SURROGATE)
      count -= 1;
  }
  return count;
}
