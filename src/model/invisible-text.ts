/**
 * What turns the direction of the text around it, or is not seen at all: marks, embeddings, overrides, isolates, zero
 * width signs, tags, and what only some terminals show. Joiners stay, which emoji and some scripts are written with.
 */
const HIDDEN = String.raw`\u00AD\u061C\u115F\u1160\u180E\u200B\u200E\u200F\u202A-\u202E\u2060-\u206F\u3164\uFEFF\uFFA0\uFFF9-\uFFFB\u{E0000}-\u{E0FFF}`;
const HIDDEN_PATTERN = new RegExp(`[${HIDDEN}]`, 'gu');
/** The same with control characters, line ends and halves of surrogate pairs. */
const INVISIBLE = new RegExp(`[\\p{Cc}\\u2028\\u2029${HIDDEN}\\p{Cs}]`, 'gu');

/** The text without anything that is not seen and changes how the rest is seen. */
export function removeInvisible(text: string): string {
  return text.replace(INVISIBLE, '');
}

/** Likewise, but lines and all other control characters stay. */
export function removeHidden(text: string): string {
  return text.replace(HIDDEN_PATTERN, '');
}

export function holdsInvisible(text: string): boolean {
  return text.search(INVISIBLE) >= 0;
}
