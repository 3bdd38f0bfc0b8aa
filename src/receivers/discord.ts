import { clippedText, shownSender, textWithFiles } from './core/message-text.ts';
import type { ReceiverFormat, ReceiverMessage } from './core/receiver-format.ts';
import { requestsToHookUrl } from './core/request-url.ts';

const MAX_CONTENT_LENGTH = 2_000;
const MAX_USERNAME_LENGTH = 80;
/** Discord answers 400 to a user name that contains one of these words. */
const FORBIDDEN_IN_USERNAME = /discord|clyde/i;

/** Discord's incoming webhooks. No text mentions anybody on Discord, whatever it contains. */
export const discord: ReceiverFormat = {
  name: 'discord',
  headers: { 'content-type': 'application/json' },
  ...requestsToHookUrl,
  body: (message) => {
    const { iconUrl } = message.sender;
    return JSON.stringify({
      ...contentAndUsername(message),
      ...(iconUrl === null ? {} : { avatar_url: iconUrl }),
      allowed_mentions: { parse: [] },
    });
  },
  readReply: null,
};

/** The text and the user name for Discord. A name that Discord refuses as a user name begins the text instead. */
function contentAndUsername(message: ReceiverMessage): { content: string; username?: string } {
  const name = shownSender(message);
  const text = textWithFiles(message);
  if (FORBIDDEN_IN_USERNAME.test(name)) return { content: clippedText(`${name}: ${text}`, MAX_CONTENT_LENGTH) };
  return {
    content: clippedText(text, MAX_CONTENT_LENGTH),
    username: name.slice(0, MAX_USERNAME_LENGTH).toWellFormed(),
  };
}
