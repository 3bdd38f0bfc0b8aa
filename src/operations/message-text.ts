import { KlatchError } from '../errors.ts';

const NOT_WHITE_SPACE = /[^\p{White_Space}\uFEFF]/u;

const invalid = (sentence: string): KlatchError => new KlatchError('invalid_input', { sentence });

/**
 * The text of a message, if it is one. A message that carries files needs none: white space alone is none then. Throws
 * KlatchError with a sentence that names the field and the limit.
 */
export function checkMessageText(
  text: string,
  maxCodePoints: number,
  { isAccompanied = false }: { isAccompanied?: boolean } = {},
): string {
  if (!NOT_WHITE_SPACE.test(text)) {
    if (isAccompanied) return '';
    throw invalid('text: must hold something other than white space');
  }
  if (!text.isWellFormed()) throw invalid('text: is not valid Unicode (it holds half of a surrogate pair)');
  if (text.includes('\u0000')) throw invalid('text: must not hold the character NUL');
  // Code points are at most as many as code units, so most texts need no counting.
  if (text.length > maxCodePoints && codePoints(text) > maxCodePoints) {
    const sentence = `text: has ${codePoints(text)} characters (code points), at most ${maxCodePoints} are allowed`;
    throw new KlatchError('too_large', { sentence });
  }
  return text;
}

/** How many characters a text has, an emoji beyond the basic plane being one. */
export function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}
