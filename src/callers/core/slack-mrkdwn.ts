import { emojiOf } from './emoji-shortcodes.ts';
import { clipped, defusedText, labelledLink } from './plain-text.ts';
import { isoTime, numberOf } from './values.ts';

/**
 * The longest text that is read, in UTF-16 units. Slack accepts 40,000 characters. To read a text of 100,000 emoji
 * names took 50 ms.
 */
const MAX_MARKUP_LENGTH = 60_000;

/**
 * The markup of Slack, Mattermost and Rocket.Chat. The alternatives in their order: `(<…>)`, `<…>`, a block of code,
 * code in a line, a Markdown link, a URL, the name of an emoji. No repetition is inside another one, so that a match
 * takes time in proportion to the text's length.
 */
const MARKUP_PATTERN =
  /\(<([^<>\n]{1,3000})>\)|<([^<>\n]{1,3000})>|(```[\s\S]*?```|`[^`\n]+`)|!?\[([^[\]<>\n]{1,500})\]\((https?:\/\/[^\s()<>]{1,2048})\)|https?:\/\/[^\s<>]+|(?<![\p{L}\p{N}_]):([a-z0-9_+'-]{1,60}):(?::skin-tone-\d:)?/gu;
const ANGLE_BRACKETS = /<([^<>\n]{1,3000})>/g;
const EMOJI_NAME = /(?<![\p{L}\p{N}_]):([a-z0-9_+'-]{1,60}):(?::skin-tone-\d:)?/gu;
const ESCAPED = /&(amp|lt|gt);/g;
const UNESCAPED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>' };

const WEB_ADDRESS = /^https?:\/\/\S+$/i;
const MAIL_ADDRESS = /^mailto:(\S+)$/i;
/** A URL that opens a program, such as `slack://…`: only its label is of use to a reader. */
const OTHER_ADDRESS = /^(?:[a-z][a-z0-9+.-]{1,20}:\/\/|tel:)\S+$/i;
const USER = /^@([\w.-]+)$/;
const CHANNEL = /^#([\w.-]+)$/;
const BROADCASTS: ReadonlySet<string> = new Set(['!here', '!channel', '!everyone', '!group']);
const USER_GROUP = /^!subteam\^(\w+)$/;
const DATE = /^!date\^(-?\d{1,12})\^/;

/**
 * Converts Slack's markup to plain text. URLs, names, times, and also Markdown links (of Mattermost and Rocket.Chat)
 * are written out. Emphasis and code stay as they were typed.
 */
export function mrkdwnText(text: string): string {
  const source = clipped(text, MAX_MARKUP_LENGTH);
  return unescaped(source.replace(MARKUP_PATTERN, replaceMarkupMatch));
}

/** Converts a text that Slack shows without markup: only the names of emoji are replaced. */
export function unformattedText(text: string, replacesEmojiNames = true): string {
  const source = clipped(text, MAX_MARKUP_LENGTH);
  return unescaped(replacesEmojiNames ? source.replace(EMOJI_NAME, emojiOrAsTyped) : source);
}

function replaceMarkupMatch(
  matchedText: string,
  inParenthesizedBrackets?: string,
  inAngleBrackets?: string,
  code?: string,
  linkLabel?: string,
  linkUrl?: string,
  emojiName?: string,
): string {
  if (inParenthesizedBrackets !== undefined)
    return `(${bracketsText(matchedText.slice(1, -1), inParenthesizedBrackets, linkInParentheses)})`;
  if (inAngleBrackets !== undefined) return bracketsText(matchedText, inAngleBrackets);
  if (code !== undefined) return code.replace(ANGLE_BRACKETS, (whole, content: string) => bracketsText(whole, content));
  if (linkLabel !== undefined && linkUrl !== undefined) return labelledLink(linkLabel, linkUrl);
  return emojiName === undefined ? matchedText : emojiOrAsTyped(matchedText, emojiName);
}

function emojiOrAsTyped(typed: string, name: string): string {
  return emojiOf(name) ?? typed;
}

/**
 * The plain text for `<address|label>` and similar markup. Anything else in angle brackets, such as a type parameter in
 * code, stays as typed.
 */
function bracketsText(typed: string, content: string, formatLink = labelledLink): string {
  const bar = content.indexOf('|');
  const target = (bar === -1 ? content : content.slice(0, bar)).trim();
  const label = bar === -1 ? '' : content.slice(bar + 1).trim();
  const sign = target[0];
  if (sign === '@' || sign === '#' || sign === '!') return mentionText(typed, target, label);
  if (WEB_ADDRESS.test(target)) return formatLink(label, target);
  const mail = MAIL_ADDRESS.exec(target)?.[1]?.split('?')[0];
  if (mail !== undefined) return label === '' || label === mail ? mail : `${label} (${mail})`;
  if (OTHER_ADDRESS.test(target)) return label === '' ? target : label;
  return typed;
}

/**
 * The text for a link in parentheses, as Jenkins and others write it: `(<address|Open>)`. It becomes `Open: address`,
 * since nested parentheses are hard to read.
 */
function linkInParentheses(label: string, url: string): string {
  return label === '' || labelledLink(label, url) === url ? url : `${label}: ${url}`;
}

/**
 * The text for a person, channel, broadcast or user group. Only that for a person may mention a member: Klatch has
 * nothing like the others.
 */
function mentionText(typed: string, target: string, label: string): string {
  const channel = CHANNEL.exec(target)?.[1];
  if (channel !== undefined) return `#${withoutSign('#', label) || channel}`;
  const user = USER.exec(target)?.[1];
  if (user !== undefined) return label === '' ? defusedText(`@${user}`) : `@${withoutSign('@', label)}`;
  if (BROADCASTS.has(target)) return defusedText(`@${target.slice(1)}`);
  const group = USER_GROUP.exec(target)?.[1];
  if (group !== undefined) return defusedText(`@${withoutSign('@', label) || group}`);
  const seconds = DATE.exec(target)?.[1];
  if (seconds !== undefined) return label || isoTime(numberOf(seconds)! * 1_000) || typed;
  return /^![a-z_]+/.test(target) && label !== '' ? label : typed;
}

const withoutSign = (sign: string, name: string): string => (name.startsWith(sign) ? name.slice(sign.length) : name);

/** Replaces Slack's entities. Must be called once, as the last step, so that `&amp;lt;` becomes `&lt;` and not `<`. */
function unescaped(text: string): string {
  return text.includes('&') ? text.replace(ESCAPED, (_, name: string) => UNESCAPED[name]!) : text;
}
