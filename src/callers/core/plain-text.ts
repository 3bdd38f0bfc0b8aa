/** Control characters besides line feed and tab. */
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
/**
 * Characters that change the direction of the text around them: they can make a link or a name look like another one.
 */
const DIRECTION_CONTROLS = /[\u202a-\u202e\u2066-\u2069]/g;
/** An `@` that begins a nick for `mentionsOf` (model/mentions.ts), unlike an `@` within an e-mail address or a path. */
const MENTION_SIGN = /(?<![\p{L}\p{N}._@/-])@(?!\u2060)/gu;
/** An invisible character that no nick holds. */
const WORD_JOINER = '\u2060';
const HIGH_SURROGATE_END = 0xdbff;
const HIGH_SURROGATE = 0xd800;

/** Text that may be stored: whole characters, lines that end with a line feed, no other control characters. */
export function storableText(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll('\r', '\n').replace(CONTROLS, '').toWellFormed();
}

/** Text that a stranger may have written: mentions nobody, and hides nothing by the direction of writing. */
export function defusedText(text: string): string {
  return text.replace(DIRECTION_CONTROLS, '').replace(MENTION_SIGN, `@${WORD_JOINER}`);
}

/**
 * The beginning of a text, followed by `… (cut)` where something was left out. No surrogate pair is split. `maxLength`
 * is in UTF-16 units, of which a text has at least as many as code points.
 */
export function clipped(text: string, maxLength: number, mark = '… (cut)'): string {
  if (text.length <= maxLength) return text;
  const unit = text.charCodeAt(maxLength - mark.length - 1);
  const isPairCut = unit >= HIGH_SURROGATE && unit <= HIGH_SURROGATE_END;
  return text.slice(0, maxLength - mark.length - (isPairCut ? 1 : 0)) + mark;
}

const LINK_PATTERN = /^(?:https?:\/\/|mailto:)[^\s<>"\\]+$/i;
const MAX_LINK_LENGTH = 2_048;

/** The address of a link that a reader may open, of the web or of mail; empty for any other address. */
export function safeLink(url: string): string {
  const trimmed = url.trim();
  return trimmed.length <= MAX_LINK_LENGTH && LINK_PATTERN.test(trimmed) ? trimmed : '';
}

/** Text such as `label (address)`, or only one of the two if the other is empty or both are equal. */
export function labelledLink(label: string, url: string): string {
  const text = label.trim();
  if (url === '') return text;
  const isRepeated = text === '' || text === url || text === url.replace(/^(?:https?:\/\/|mailto:)/i, '');
  return isRepeated ? url : `${text} (${url})`;
}
