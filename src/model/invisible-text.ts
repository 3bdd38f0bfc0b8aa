const CONTROL = String.raw`\p{Cc}\u2028\u2029`;
/**
 * What turns the direction of the text around it, or is not seen at all: marks, embeddings, overrides, isolates, zero
 * width signs, tags, and what only some terminals show. Joiners stay, which emoji and some scripts are written with.
 */
const HIDDEN = String.raw`\u00AD\u061C\u115F\u1160\u180E\u200B\u200E\u200F\u202A-\u202E\u2060-\u206F\u3164\uFEFF\uFFA0\uFFF9-\uFFFB\u{E0000}-\u{E0FFF}`;

/** Characters that deceive the reader of a line without being seen. */
export const HIDDEN_CHARACTER = new RegExp(`[${HIDDEN}]`, 'gu');
/** The same with control characters, line ends and halves of surrogate pairs. */
const INVISIBLE = new RegExp(`[${CONTROL}${HIDDEN}\\p{Cs}]`, 'gu');
/** Those that `JSON.stringify` leaves as they are. */
const UNESCAPED = new RegExp(`[\\u007F-\\u009F\\u2028\\u2029${HIDDEN}]`, 'gu');

/** The text without anything that is not seen and changes how the rest is seen. */
export function removeInvisible(text: string): string {
  return text.replace(INVISIBLE, '');
}

export function holdsInvisible(text: string): boolean {
  return text.search(INVISIBLE) >= 0;
}

/** A value as JSON that is safe on a terminal and reads back as it was. */
export function toSafeJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(UNESCAPED, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
