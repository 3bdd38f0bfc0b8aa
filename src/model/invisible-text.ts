/**
 * Characters that turn the direction of the text around them, or that are invisible: marks, embeddings, overrides,
 * isolates, zero width signs, tags, and signs that only some terminals show. Joiners are not among them: emoji and some
 * scripts need them.
 */
const HIDDEN_CHARACTER_RANGES = String.raw`\u00AD\u061C\u115F\u1160\u180E\u200B\u200E\u200F\u202A-\u202E\u2060-\u206F\u3164\uFEFF\uFFA0\uFFF9-\uFFFB\u{E0000}-\u{E0FFF}`;
const HIDDEN_PATTERN = new RegExp(`[${HIDDEN_CHARACTER_RANGES}]`, 'gu');
/** Hidden characters, control characters, line ends and halves of surrogate pairs. */
const INVISIBLE = new RegExp(`[\\p{Cc}\\u2028\\u2029${HIDDEN_CHARACTER_RANGES}\\p{Cs}]`, 'gu');

/** The text without invisible characters. */
export function removeInvisible(text: string): string {
  return text.replace(INVISIBLE, '');
}

/** The text without hidden characters; line ends and all other control characters stay. */
export function removeHidden(text: string): string {
  return text.replace(HIDDEN_PATTERN, '');
}

export function holdsInvisible(text: string): boolean {
  return text.search(INVISIBLE) >= 0;
}
