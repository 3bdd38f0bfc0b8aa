/** `@` and the part of a nick that was typed. */
export interface BegunMention {
  /** The position of the `@` in the text. */
  readonly atSignIndex: number;
  /** The typed part of the nick, without the `@`; at least one character. */
  readonly text: string;
}

/** The length of `@` and the longest nick, which has 32 characters. */
const MAX_MENTION_CHARACTERS = 33;
const BEGUN_MENTION = /(?:^|[^\p{L}\p{N}._@/-])@([\p{L}\p{N}._-]{1,32})$/u;

/** The mention that ends at the caret; null: none ends there, or text is selected. */
export function mentionAt(text: string, selectionStart: number, selectionEnd: number): BegunMention | null {
  if (selectionStart !== selectionEnd) return null;
  // The character before the `@` decides whether a mention begins; it may take two UTF-16 units.
  const before = text.slice(Math.max(0, selectionStart - MAX_MENTION_CHARACTERS - 2), selectionStart);
  const typed = BEGUN_MENTION.exec(before)?.[1];
  return typed === undefined ? null : { atSignIndex: selectionStart - typed.length - 1, text: typed };
}

/** Whether the nick or a word of the name of an account begins with the typed text. */
export function matchesMention(
  { nick, name }: { readonly nick: string; readonly name: string },
  typed: string,
): boolean {
  const wanted = typed.toLowerCase();
  return [nick, ...name.split(/\s+/)].some((part) => part.toLowerCase().startsWith(wanted));
}
