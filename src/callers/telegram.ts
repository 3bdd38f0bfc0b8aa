import { isFromGitHost, type CallerFormat, type CallerRequest } from './core/caller-format.ts';
import { htmlText } from './core/html-text.ts';
import { markdownText } from './core/markdown-text.ts';
import { card, messageForm, type Link, type MessageForm } from './core/message-form.ts';
import { safeLink } from './core/plain-text.ts';
import { MAX_TEXT_LENGTH } from './core/render-text.ts';
import { firstStringOf, objectOf, objectsOf, stringOf, parseJsonIfString } from './core/values.ts';

const CONTENT_FIELDS = ['text', 'caption', 'photo', 'document', 'rich_message'] as const;
/**
 * Fields that may contain the URL of a file. They may also contain Telegram's id of a file or the name of an upload,
 * which are not shown.
 */
const FILE_FIELDS = ['document', 'video', 'animation', 'audio', 'voice'] as const;
const MAX_KEYBOARD_ROWS = 100;

/**
 * Telegram's `sendMessage`, and its methods that send a file with a caption. The token in the URL selects the group;
 * `chat_id` does not.
 */
export const telegram: CallerFormat = {
  name: 'telegram',
  matches: ({ body }) =>
    firstStringOf(body['chat_id']) !== '' && CONTENT_FIELDS.some((name) => (body[name] ?? null) !== null),
  read: readTelegram,
};

function readTelegram(request: CallerRequest): MessageForm {
  /** Telegram accepts every parameter in the query too. */
  const parameterOf = (name: string): unknown => request.body[name] ?? request.query.get(name);
  const parseMode = stringOf(parameterOf('parse_mode')).toLowerCase();
  const urlParameter = (name: string): string => safeLink(stringOf(parameterOf(name)));
  const files = FILE_FIELDS.map(urlParameter).filter((url) => url !== '');
  return messageForm({
    text: firstStringOf(
      plainTextOf(firstStringOf(parameterOf('text'), parameterOf('caption')), parseMode),
      richText(parameterOf('rich_message')),
    ),
    cards: [
      card({
        image: urlParameter('photo'),
        links: [...files.map((url) => ({ label: '', url })), ...keyboardLinks(parameterOf('reply_markup'))],
      }),
    ],
    hasStrangersText: isFromGitHost(request),
  });
}

function plainTextOf(text: string, parseMode: string): string {
  if (parseMode === 'html') return htmlText(text, MAX_TEXT_LENGTH);
  if (parseMode === 'markdownv2') return markdownText(text, { escapable: /[!-/:-@[-`{-~]/ }, MAX_TEXT_LENGTH);
  return parseMode === 'markdown' ? markdownText(text, { escapable: /[_*`[]/ }, MAX_TEXT_LENGTH) : text;
}

/** The text of the method `sendRichMessage`, which Gitea uses since 2026. */
function richText(value: unknown): string {
  const { html, markdown } = objectOf(parseJsonIfString(value));
  return firstStringOf(
    htmlText(stringOf(html), MAX_TEXT_LENGTH),
    markdownText(stringOf(markdown), {}, MAX_TEXT_LENGTH),
  );
}

/** The links of the buttons below the message. Buttons without a URL are left out. */
function keyboardLinks(value: unknown): readonly Link[] {
  const { inline_keyboard: rows } = objectOf(parseJsonIfString(value));
  const buttons = Array.isArray(rows)
    ? rows.slice(0, MAX_KEYBOARD_ROWS).flatMap((row: unknown) => objectsOf(row, MAX_KEYBOARD_ROWS))
    : [];
  return buttons
    .map(({ text, url }) => ({ label: stringOf(text), url: safeLink(stringOf(url)) }))
    .filter(({ url }) => url !== '');
}
