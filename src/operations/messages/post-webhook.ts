import { setTimeout as wait } from 'node:timers/promises';
import { KlatchError } from '../../errors.ts';
import type { PostedExpectation } from '../../model/expectation.ts';
import { messageId } from '../../model/ids.ts';
import type { Integration } from '../../storage/groups/integrations.ts';
import type { Post, PostResult } from '../../storage/messages/write-posts.ts';
import { assertAttachable } from './attachments.ts';
import { appendPost } from './messages.ts';
import { applyPostedExpectation } from './posted-expectation.ts';
import type { RateLimiter } from '../core/rate-limiter.ts';
import type { Services } from '../core/services.ts';

/**
 * A message from a webhook. The code that received it has checked it, and put the namespace before its idempotency
 * `key`.
 */
export interface WebhookMessage extends Omit<Post, 'conversationId' | 'admission' | 'senderId' | 'expectation'> {
  readonly expectation?: PostedExpectation;
}

/**
 * Counts a post of the group's integration. Returns a promise of the wait that the rate limit imposes; null: no wait,
 * as for nearly all posts. Throws `token_rate_limited` if the wait would exceed `maxWaitMs`.
 */
export function waitForRateLimit(
  limiter: RateLimiter<number>,
  integration: Integration,
  maxWaitMs: number,
): Promise<void> | null {
  const waitMs = limiter.reserve(integration.conversationId, maxWaitMs);
  if (waitMs === null) throw new KlatchError('token_rate_limited');
  return waitMs === 0 ? null : wait(waitMs);
}

/**
 * Posts into the group of the token, as its integration. Resolves, after the commit, to the id of the message; for a
 * repeated post, to that of the first one. Throws `invalid_token`, `group_archived`, `signing_changed`,
 * `idempotency_key_reused`, `quota_exceeded` (for its expectation), and the errors of the message log.
 */
export async function postMessage(
  services: Services,
  access: PresentedToken,
  message: WebhookMessage,
): Promise<string> {
  return idOf(access, await postOrExplainRefusal(services, access, message));
}

/**
 * As `postMessage`, for a message with files. `isNew`: the files are attached to this message. Not `isNew`: `id` is
 * that of an earlier message, for a repeated post.
 */
export async function postMessageReportingIsNew(
  services: Services,
  access: PresentedToken,
  message: WebhookMessage,
): Promise<{ readonly id: string; readonly isNew: boolean }> {
  const posted = await postOrExplainRefusal(services, access, message);
  return { id: idOf(access, posted), isNew: posted.outcome === 'new' };
}

function idOf({ integration }: PresentedToken, { seq, logEpoch }: StoredPost): string {
  return messageId(integration.conversationId, seq, logEpoch);
}

/** An integration token, and the integration that the token belongs to. */
export interface PresentedToken {
  readonly integration: Integration;
  readonly token: string;
}

/** The result of a post that was not refused. */
type StoredPost = Exclude<PostResult, { outcome: 'refused' }>;

/** As `postMessage`, but resolves to the whole result of the message log. */
export async function postOrExplainRefusal(
  services: Services,
  { integration, token }: PresentedToken,
  message: WebhookMessage,
): Promise<StoredPost> {
  const { expectation } = message;
  if (expectation !== undefined) await applyPostedExpectation(services, integration, expectation);
  const posted = await appendPost(services, toPost(integration, message));
  if (posted.outcome === 'refused') {
    // The post was refused since the cached integration was outdated or a file cannot be attached: the database says
    // which.
    const currentIntegration = await services.tokens.findBypassingCache(token);
    if (currentIntegration?.archived === false && currentIntegration.admission !== integration.admission)
      throw new KlatchError('signing_changed');
    if (currentIntegration?.archived === false)
      await assertAttachable(services, integration.accountId, message.attachments);
    throw new KlatchError(
      currentIntegration !== null && currentIntegration.archived ? 'group_archived' : 'invalid_token',
    );
  }
  if (posted.outcome === 'repeat' && !posted.sameBody) throw new KlatchError('idempotency_key_reused');
  if (expectation !== undefined) services.recheckOverdueExpectations();
  return posted;
}

function toPost({ conversationId, admission, accountId: senderId }: Integration, message: WebhookMessage): Post {
  return { ...message, conversationId, admission, senderId };
}
