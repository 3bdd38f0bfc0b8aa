import type { IncomingMessage } from 'node:http';
import type { ErrorCode, KlatchError } from '../../errors.ts';
import { adaptiveCard } from '../../callers/adaptive-card.ts';
import { formatNameOf, type Answer, type AnswerDialect } from './caller-route.ts';
import { parseMessageId, type ConversationId } from '../../model/ids.ts';

/** Answers at a group's own address. A success has every field that a known program looks for. */
export const ownDialect: AnswerDialect = {
  success: ({ id }) => ({ status: 200, body: { status: 'Ok', ok: true, success: true, id } }),
  ignored: ({ ignored }) => ({ status: 200, body: { status: 'Ok', ok: true, success: true, ignored } }),
  failure: (error) => ({ status: error.status, body: { message: error.message } }),
};

/** Gives the same answer to every message, and to a request that posts none. */
function constantSuccess(answer: Answer): Pick<AnswerDialect, 'success' | 'ignored'> {
  return { success: () => answer, ignored: () => answer };
}

/** Codes by which Slack's callers, such as Grafana, distinguish lasting errors from those worth a repeat. */
const SLACK_CODES: Partial<Record<ErrorCode, string>> = {
  invalid_token: 'no_service',
  group_archived: 'channel_is_archived',
  invalid_input: 'invalid_payload',
};

/** The answers of Slack's and Mattermost's incoming webhooks. */
export const slackDialect: AnswerDialect = {
  ...constantSuccess({ status: 200, body: 'ok' }),
  failure: (error) => ({ status: error.status, body: SLACK_CODES[error.code] ?? error.message }),
};

/** The answers of Rocket.Chat's incoming webhooks. */
export const rocketChatDialect: AnswerDialect = {
  ...constantSuccess({ status: 200, body: { success: true } }),
  failure: (error) => ({ status: error.status, body: { success: false, error: error.message } }),
};

/** Discord's error codes: 10015 for an unknown webhook, 50035 for an invalid form body. */
const DISCORD_CODES: Partial<Record<ErrorCode, number>> = {
  invalid_token: 10_015,
  group_archived: 10_015,
  invalid_input: 50_035,
  too_large: 50_035,
};

/**
 * The answers of Discord's webhooks. The answer holds the message only if the parameter `wait` asks for it, or if the
 * request has files.
 */
export const discordDialect: AnswerDialect = {
  ...constantSuccess({ status: 204, body: null }),
  success: ({ id, text }, req) => {
    if (!asksToWait(req) && !carriesFiles(req)) return { status: 204, body: null };
    const { conversationId, seq } = parseMessageId(id)!;
    const message = {
      id: String(seq),
      type: 0,
      channel_id: String(conversationId),
      webhook_id: String(conversationId),
      content: text,
      embeds: [],
      attachments: [],
      mentions: [],
      timestamp: new Date().toISOString(),
      author: { id: String(conversationId), username: 'Klatch', bot: true },
    };
    return { status: 200, body: message };
  },
  failure: (error) => ({
    status: error.status,
    body: { code: DISCORD_CODES[error.code] ?? 0, message: error.message, ...retryAfterOf(error) },
  }),
};

/** Discord's description of a webhook; type `1` is the kind that programs post to. */
export function discordWebhook(group: ConversationId): Answer {
  const id = String(group);
  return { status: 200, body: { id, type: 1, name: nameOf(group), channel_id: id, avatar: null } };
}

/** Upper case is accepted, since Python's libraries write `True`. */
const WAIT_PATTERN = /[?&]wait=(?:true|1)(?:&|$)/i;
const asksToWait = (req: IncomingMessage): boolean => WAIT_PATTERN.test(req.url ?? '');
/** When they send files, Discord's libraries take any status but 200 for a failure. */
const carriesFiles = (req: IncomingMessage): boolean => /^multipart\//i.test(req.headers['content-type'] ?? '');

/**
 * The answers of Microsoft Teams: 202 for an Adaptive Card, as its workflows answer, otherwise 200, as its connectors
 * answer. Programs tell the two apart by the status.
 */
export const teamsDialect: AnswerDialect = {
  ...constantSuccess({ status: 200, body: '1' }),
  success: (_posted, req) =>
    formatNameOf(req) === adaptiveCard.name ? { status: 202, body: '' } : { status: 200, body: '1' },
  failure: (error) => ({ status: error.status, body: error.message }),
};

/** The answers to Gotify's `POST /message`. */
export const gotifyDialect: AnswerDialect = {
  ...constantSuccess({ status: 200, body: {} }),
  success: ({ id, text }) => {
    const { conversationId, seq } = parseMessageId(id)!;
    const date = new Date().toISOString();
    return { status: 200, body: { id: seq, appid: conversationId, message: text, title: '', priority: 0, date } };
  },
  failure: (error) => ({
    status: error.status,
    body: { error: error.code, errorCode: error.status, errorDescription: error.message },
  }),
};

/**
 * The answers to publishing with ntfy. The topic that the sender used is the group's token, which no answer repeats. So
 * `topic` is the group's number here.
 */
export const ntfyDialect: AnswerDialect = {
  ...constantSuccess({ status: 200, body: {} }),
  success: ({ id, text }) => {
    const time = Math.floor(Date.now() / 1_000);
    return { status: 200, body: { id, time, event: 'message', topic: id.split(':', 1)[0], message: text } };
  },
  failure: (error) => ({
    status: error.status,
    body: { code: error.status * 100, http: error.status, error: error.message },
  }),
};

/** The answers of Telegram's Bot API: its libraries read `result.chat`, and some fail without it. */
export const telegramDialect: AnswerDialect = {
  ...constantSuccess({ status: 200, body: { ok: true, result: true } }),
  success: ({ id, text }) => {
    const { conversationId, seq } = parseMessageId(id)!;
    const chat = { id: -Number(conversationId), type: 'group', title: nameOf(conversationId) };
    const date = Math.floor(Date.now() / 1_000);
    return { status: 200, body: { ok: true, result: { message_id: seq, date, chat, text } } };
  },
  failure: (error) => ({
    status: error.status,
    body: {
      ok: false,
      error_code: error.status,
      description: error.message,
      ...(error.retryAfterS === null ? {} : { parameters: { retry_after: error.retryAfterS } }),
    },
  }),
};

/** The answer to `getMe`, with which Telegram's libraries check their token at the start. */
export function telegramBot(group: ConversationId): Answer {
  const result = { id: group, is_bot: true, first_name: nameOf(group), username: `klatch_${group}_bot` };
  return { status: 200, body: { ok: true, result } };
}

/** Answers for bridges to Matrix and for the API of Apprise. */
export const okDialect: AnswerDialect = {
  ...constantSuccess({ status: 200, body: { ok: true, success: true } }),
  failure: (error) => ({ status: error.status, body: { ok: false, success: false, message: error.message } }),
};

/** The name of a group in answers. It is not the group's title, which only members may see. */
const nameOf = (group: ConversationId): string => `Klatch ${group}`;

function retryAfterOf({ retryAfterS }: KlatchError): { readonly retry_after?: number } {
  return retryAfterS === null ? {} : { retry_after: retryAfterS };
}
