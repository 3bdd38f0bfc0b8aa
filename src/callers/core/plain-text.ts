/** All control characters but line feed and tab. */
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
/**
 * Characters that change the writing direction of the text around them. With them, a link or a name can look like
 * another one.
 */
const DIRECTION_CONTROLS = /[\u202a-\u202e\u2066-\u2069]/g;
/**
 * An `@` that begins a mention, by the rule of `mentionsOf` (model/mentions.ts); not one within an e-mail address or a
 * path.
 */
const MENTION_SIGN = /(?<![\p{L}\p{N}._@/-])@(?!\u2060)/gu;
/** An invisible character that no nick contains. After an `@` it prevents a mention. */
const WORD_JOINER = '\u2060';
const HIGH_SURROGATE_END = 0xdbff;
const HIGH_SURROGATE_START = 0xd800;

/**
 * Makes a text storable: only whole characters, only line feeds as line ends, and no other control characters but tab.
 */
export function storableText(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll('\r', '\n').replace(CONTROLS, '').toWellFormed();
}

/**
 * Makes a text safe that a stranger may have written: it then mentions nobody, and has no characters that change the
 * writing direction.
 */
export function defusedText(text: string): string {
  return text.replace(DIRECTION_CONTROLS, '').replace(MENTION_SIGN, `@${WORD_JOINER}`);
}

/**
 * Cuts a text to `maxLength` UTF-16 units, with `… (cut)` at the end if anything was left out. Does not split surrogate
 * pairs.
 */
export function clipped(text: string, maxLength: number, mark = '… (cut)'): string {
  if (text.length <= maxLength) return text;
  const unit = text.charCodeAt(maxLength - mark.length - 1);
  const isPairCut = unit >= HIGH_SURROGATE_START && unit <= HIGH_SURROGATE_END;
  return text.slice(0, maxLength - mark.length - (isPairCut ? 1 : 0)) + mark;
}

const LINK_PATTERN = /^(?:https?:\/\/|mailto:)[^\s<>"\\]+$/i;
const MAX_LINK_LENGTH = 2_048;

/** The URL, if it is one that a reader may open (web or e-mail); otherwise empty. */
export function safeLink(url: string): string {
  const trimmed = url.trim();
  return trimmed.length <= MAX_LINK_LENGTH && LINK_PATTERN.test(trimmed) ? trimmed : '';
}

/** A text such as `label (address)`, or only one of the two if the other is empty or both are equal. */
export function labelledLink(label: string, url: string): string {
  const text = label.trim();
  if (url === '') return text;
  const isRepeated = text === '' || text === url || text === url.replace(/^(?:https?:\/\/|mailto:)/i, '');
  return isRepeated ? url : `${text} (${url})`;
}
