import { createHash } from 'node:crypto';
import { isObject, type JsonObject } from '../../callers/core/values.ts';
import { KlatchError } from '../../errors.ts';
import type { ForeignHookFormat } from '../../model/hook-format.ts';
import { epochSuffix } from '../../model/ids.ts';
import { iconUrlOf, labelOf } from '../../model/shown-sender.ts';
import { sourceKey } from '../../model/source-key.ts';
import type { PostReply, ReceivedAnswer, ReceiverReply, ReplyProblem } from '../../receivers/core/reply.ts';
import { receiverFormat } from '../../receivers/formats.ts';
import { findIntegrationOfConversation, type Integration } from '../../storage/groups/integrations.ts';
import { PoisonMessageError } from '../../storage/messages/message-log.ts';
import type { Post } from '../../storage/messages/write-posts.ts';
import { translateLostRead } from '../core/database-errors.ts';
import type { JsonLimits } from '../core/json-limits.ts';
import { checkMessageText } from '../core/message-text.ts';
import { parseJsonRepairingControls } from '../core/parse-json.ts';
import { RateLimiter } from '../core/rate-limiter.ts';
import type { Services } from '../core/services.ts';
import { appendPost } from './messages.ts';
import { waitForRateLimit } from './post-webhook.ts';

/** Limits of a receiver's answer, lower than those of a caller's post: a reply has a few cards at most. */
const REPLY_LIMITS: JsonLimits = { maxDepth: 32, maxValues: 10_000, maxShapes: 1_000 };
const MAX_RATE_LIMITED_GROUPS = 10_000;
/** At most this many attempts to post a reply: the token may be replaced between its look-up and the post. */
const MAX_POST_ATTEMPTS = 3;

/**
 * Makes the function that posts replies, as the integration of the group and at the rate limit of one token. Each reply
 * has an idempotency key of hook and message, which is stored for a day. So a message that is delivered twice gets one
 * reply. The function rejects if a later call may succeed in posting the reply.
 */
export function createReplyPoster(services: Services): PostReply {
  const { limits } = services.config;
  const rate = new RateLimiter<number>({
    perSecond: limits.postsPerSecondPerToken,
    burst: limits.postBurstPerToken,
    maxKeys: MAX_RATE_LIMITED_GROUPS,
  });
  return async (receivedAnswer) => {
    const replyOrProblem = await readAnswer(services, receivedAnswer);
    if (replyOrProblem === null || typeof replyOrProblem === 'string') return replyOrProblem;
    if (receivedAnswer.hops >= limits.hopLimit) return 'reply hop limit';
    return postAsIntegration(services, rate, { answer: receivedAnswer, reply: replyOrProblem });
  };
}

/**
 * The reply in a receiver's answer; null: it has none. Rejects if the answers of this hook have used up their parse
 * time.
 */
function readAnswer(
  { parseBudget, config }: Services,
  { hookId, format, body }: ReceivedAnswer,
): Promise<ReceiverReply | ReplyProblem | null> {
  const refusal = (): Error => new KlatchError('overloaded');
  return parseBudget.run(sourceKey(`reverse webhook ${hookId}`), refusal, () => {
    const text = body.toString();
    // An answer that is no JSON object holds no reply: most receivers that send none answer with a word.
    if (!text.trimStart().startsWith('{')) return null;
    try {
      const { value } = parseJsonRepairingControls(text, REPLY_LIMITS);
      const reply = isObject(value) ? replyOf(format, value, config.limits.textCodePoints) : null;
      if (reply !== null) checkMessageText(reply.text, config.limits.textCodePoints);
      return reply;
    } catch (error) {
      if (error instanceof KlatchError) return 'reply unreadable';
      throw error;
    }
  });
}

function replyOf(format: ForeignHookFormat, answer: JsonObject, maxTextLength: number): ReceiverReply | null {
  return receiverFormat(format)?.readReply?.(answer, maxTextLength) ?? null;
}

async function postAsIntegration(
  services: Services,
  rate: RateLimiter<number>,
  { answer, reply }: { readonly answer: ReceivedAnswer; readonly reply: ReceiverReply },
): Promise<ReplyProblem | null> {
  const { conversationId } = answer;
  for (let attempt = 1; attempt <= MAX_POST_ATTEMPTS; attempt += 1) {
    const integration = await translateLostRead(
      services.database.general.run((sql) => findIntegrationOfConversation(sql, conversationId)),
    );
    if (integration === null || integration.archived) return 'group archived';
    await waitForRateLimit(rate, integration, services.config.limits.tokenQueueTimeoutMs);
    try {
      const { outcome } = await appendPost(services, toPost(integration, answer, reply));
      if (outcome !== 'refused') return null;
    } catch (error) {
      if (!(error instanceof PoisonMessageError)) throw error;
      services.log.warn('the database refuses a reply', { hook: answer.hookId, error });
      return 'reply refused';
    }
  }
  return 'reply refused';
}

/**
 * The post of a reply. Its idempotency key cannot be that of a caller's post, whose key begins with the name of a
 * header.
 */
function toPost(integration: Integration, { hookId, seq, logEpoch, hops }: ReceivedAnswer, reply: ReceiverReply): Post {
  const { conversationId, admission, accountId: senderId } = integration;
  const { text } = reply;
  return {
    conversationId,
    admission,
    senderId,
    text,
    cardsJson: reply.cardsJson,
    label: labelOf(reply.label),
    iconUrl: iconUrlOf(reply.iconUrl),
    hops: hops + 1,
    attachments: [],
    key: `reply:${hookId}:${seq}${epochSuffix(logEpoch)}`,
    bodyHash: createHash('sha256').update(text).digest('hex'),
  };
}
