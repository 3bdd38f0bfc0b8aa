import { shownSender, textWithFiles } from './core/message-text.ts';
import type { ReceiverFormat } from './core/receiver-format.ts';
import { requestsToHookUrl } from './core/request-url.ts';

/** Slack's incoming webhooks, which Mattermost and Rocket.Chat take too. */
export const slack: ReceiverFormat = {
  name: 'slack',
  headers: { 'content-type': 'application/json' },
  ...requestsToHookUrl,
  body: (message) => {
    const { iconUrl } = message.sender;
    return JSON.stringify({
      text: escaped(textWithFiles(message)),
      username: shownSender(message),
      ...(iconUrl === null ? {} : { icon_url: iconUrl }),
    });
  },
  readReply: null,
};

/** Escapes the characters that Slack reads as the beginning of links, mentions and entities. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
