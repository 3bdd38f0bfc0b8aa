/**
 * A mention: `@nick` that follows no letter, digit or one of the signs `._@/-`, so that an e-mail address is no
 * mention. A nick may contain `.`, `_` and `-`, but not end with one of them.
 */
const MENTION = /(?<![\p{L}\p{N}._@/-])@([A-Za-z0-9](?:[A-Za-z0-9._-]{0,30}[A-Za-z0-9])?)(?![A-Za-z0-9])/gu;
const MAX_MENTIONS = 50;

/**
 * The nicks that a text mentions, in lower case and each once; at most 50. Whether accounts have these nicks is not
 * checked.
 */
export function mentionsOf(text: string): string[] {
  if (!text.includes('@')) return [];
  const nicks = new Set<string>();
  for (const [, nick] of text.matchAll(MENTION)) {
    nicks.add(nick!.toLowerCase());
    if (nicks.size === MAX_MENTIONS) break;
  }
  return [...nicks];
}

/** The text with an invisible character after each `@` where a mention could begin, so that it mentions nobody. */
export function disarmMentions(text: string): string {
  return text.replace(/(?<![\p{L}\p{N}._@/-])@/gu, '@\u2060');
}
