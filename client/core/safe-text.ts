/** Characters that a terminal would obey instead of show, and characters that would break a line. */
const CONTROL_OR_LINE_BREAK = /[\p{Cc}\u2028\u2029]/gu;
/**
 * Characters that change the direction of the surrounding text, or that are invisible. They are marks, embeddings,
 * overrides, isolates, zero-width characters, tags, and characters that only some terminals show. Joiners are not in
 * the list, because emoji and some scripts need them.
 */
const INVISIBLE_OR_BIDI_RANGES = String.raw`\u00AD\u061C\u115F\u1160\u180E\u200B\u200E\u200F\u202A-\u202E\u2060-\u206F\u3164\uFEFF\uFFA0\uFFF9-\uFFFB\u{E0000}-\u{E0FFF}`;
const INVISIBLE_OR_BIDI = new RegExp(`[${INVISIBLE_OR_BIDI_RANGES}]`, 'gu');
/** Control characters, line breaks and invisible characters that `JSON.stringify` does not escape. */
const UNSAFE_IN_JSON = new RegExp(`[\\u007F-\\u009F\\u2028\\u2029${INVISIBLE_OR_BIDI_RANGES}]`, 'gu');

/** Returns untrusted text as one line without control characters, which a terminal would obey. */
export function replaceControlCharacters(text: string): string {
  return text.replace(CONTROL_OR_LINE_BREAK, ' ');
}

/**
 * Returns untrusted text as one line without control characters, and with a mark for each character that could deceive
 * its reader.
 */
export function sanitize(text: string): string {
  return replaceControlCharacters(text).replace(INVISIBLE_OR_BIDI, '\uFFFD');
}

/** Returns a value as JSON that is safe on a terminal; `JSON.parse` restores the value. */
export function toSafeJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(UNSAFE_IN_JSON, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
