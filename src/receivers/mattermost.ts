import { messageCardsJson } from '../callers/core/message-cards.ts';
import { renderText } from '../callers/core/render-text.ts';
import { slack } from '../callers/slack.ts';
import { isIgnored } from '../callers/core/message-form.ts';
import type { JsonObject } from '../callers/core/values.ts';
import type { ReceiverFormat, ReceiverHook, ReceiverMessage } from './core/receiver-format.ts';
import type { ReceiverReply } from './core/reply.ts';
import { requestsToHookUrl } from './core/request-url.ts';

/** Mattermost's channels belong to teams. To a receiver, each installation of Klatch is one team. */
const TEAM = 'klatch';

/**
 * Mattermost's outgoing webhooks: a bot answers with the message to post. Slack's legacy outgoing webhooks have the
 * same form.
 */
export const mattermost: ReceiverFormat = {
  name: 'mattermost',
  headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
  ...requestsToHookUrl,
  body: outgoingForm,
  readReply,
};

function outgoingForm(
  { id, sentAt, text, trigger, files, group, sender }: ReceiverMessage,
  hook: ReceiverHook,
): string {
  return new URLSearchParams({
    token: hook.token,
    team_id: TEAM,
    team_domain: TEAM,
    channel_id: String(group.id),
    channel_name: group.title,
    timestamp: String(Math.floor(sentAt.getTime() / 1_000)),
    user_id: String(sender.id),
    user_name: sender.nick ?? sender.name,
    post_id: id,
    text,
    trigger_word: trigger,
    file_ids: files.map((file) => file.id).join(','),
  }).toString();
}

/** Reads an answer like an incoming webhook of Mattermost or Slack: `text`, `username`, `icon_url`, `attachments`. */
function readReply(answer: JsonObject, maxTextLength: number): ReceiverReply | null {
  const form = slack.read({ body: answer, headers: {}, query: new URLSearchParams() });
  if (isIgnored(form)) return null;
  const text = renderText(form, maxTextLength);
  return text === ''
    ? null
    : { text, cardsJson: messageCardsJson(form), label: form.senderLabel, iconUrl: form.iconUrl };
}
