import type { IncomingMessage, ServerResponse } from 'node:http';
import { KlatchError } from '../errors.ts';
import { isIgnored } from '../callers/core/message-form.ts';
import type { Log } from '../log.ts';
import type { TrustedProxies } from '../model/trusted-proxies.ts';
import { RateLimiter } from '../operations/core/rate-limiter.ts';
import type { Services } from '../operations/core/services.ts';
import { AlertWriter } from '../operations/messages/alert-writer.ts';
import { recordPostWithoutMessage } from '../operations/messages/posted-expectation.ts';
import { postMessage, waitForRateLimit } from '../operations/messages/post-webhook.ts';
import { startDeadline } from './deadline.ts';
import { NEEDLESS_SUCCESS } from './callers/caller-input.ts';
import { foreignFormatExpectation } from './callers/posted-expectation.ts';
import { originalUrlOf, sendAnswer, sendThrownError, parseBudgetExhaustedError } from './responses.ts';
import { ownDialect } from './callers/answer-dialects.ts';
import { callerRouteOf } from './callers/caller-route.ts';
import { recordIfRefused } from './callers/refused-post.ts';
import type { LargePostReader } from './large-posts/large-post-reader.ts';
import { postForm } from './post-form.ts';
import { createPostReceiver } from './post-receiver.ts';
import type { TokenGrant } from './token-auth.ts';

const MAX_RATE_LIMITED_GROUPS = 100_000;
const FAST_PATH_PATTERN = /^\/v1\/webhooks\/([\w-]{16,128})\/?$/;

/**
 * Handles a post whose token is known, from its body to its answer. `body` is given if it was read already, to find the
 * token. Rejects with the error of the post.
 */
export type PostHandler = (
  req: IncomingMessage,
  res: ServerResponse,
  grant: TokenGrant,
  body?: Buffer,
) => Promise<void>;

/**
 * The handler of all posts. A post that is refused for its content is recorded for the group.
 *
 * One asynchronous function handles the whole post, because each further one adds a promise and turns of the microtask
 * queue to every post.
 */
export function createPostHandler(
  services: Services,
  proxies: TrustedProxies,
  largePosts: LargePostReader,
): PostHandler {
  const { parseBudget, config } = services;
  const { limits } = config;
  const alerts = new AlertWriter(services);
  const rate = new RateLimiter<number>({
    perSecond: limits.postsPerSecondPerToken,
    burst: limits.postBurstPerToken,
    maxKeys: MAX_RATE_LIMITED_GROUPS,
  });
  const receive = createPostReceiver(services, largePosts);
  return async (req, res, grant, body) => {
    const { integration } = grant;
    try {
      if (integration.archived) throw new KlatchError('group_archived');
      const source = proxies.sourceKeyOf(req);
      // The parse budget is also checked before the body is read, since decompressing a body takes time too.
      if (!parseBudget.hasTimeLeft(source)) throw parseBudgetExhaustedError();
      const delay = waitForRateLimit(rate, integration, limits.tokenQueueTimeoutMs);
      if (delay !== null) await delay;
      const receivedPost = await receive({ req, res, source }, grant, body);
      const dialect = callerRouteOf(req)?.dialect ?? ownDialect;
      if (isIgnored(receivedPost)) {
        await recordPostWithoutMessage(services, integration, foreignFormatExpectation(originalUrlOf(req)));
        sendAnswer(res, dialect.ignored(receivedPost));
      } else if ('alertPost' in receivedPost) {
        const { alertPost, text } = receivedPost;
        const messageId = await alerts.post(grant, alertPost).finally(receivedPost.release);
        if (messageId === null) await recordPostWithoutMessage(services, integration, alertPost.expectation ?? null);
        sendAnswer(
          res,
          messageId === null ? dialect.ignored(NEEDLESS_SUCCESS) : dialect.success({ id: messageId, text }, req),
        );
      } else {
        const { text } = receivedPost.message;
        const messageId =
          'discardFiles' in receivedPost
            ? await postForm(services, grant, receivedPost)
            : await postMessage(services, grant, receivedPost.message);
        sendAnswer(res, dialect.success({ id: messageId, text }, req));
      }
    } catch (error) {
      recordIfRefused(services.refusedPosts, { req, res, integration }, error);
      throw error;
    }
  };
}

/**
 * Handles posts with a plain path and a cached token, which are nearly all requests, without Express. Express is a
 * fifth of a post's cost (43 µs with it, 34 µs without). Returns false, having done nothing, for any other request:
 * Express then handles it.
 */
export function createCachedTokenFastPath(
  services: Services,
  handlePost: PostHandler,
): (req: IncomingMessage, res: ServerResponse) => boolean {
  const { tokens, config, log } = services;
  const { requestToResponseTimeoutMs } = config.http;
  // With `http.cors`, Express handles all requests: it adds the headers of CORS.
  if (config.http.cors.length > 0) return () => false;
  return (req, res) => {
    if (req.method !== 'POST' || req.headers.host === undefined) return false;
    const token = FAST_PATH_PATTERN.exec(req.url!)?.[1];
    const integration = token === undefined ? undefined : tokens.findCached(token);
    if (integration === undefined) return false;
    startDeadline(req, res, requestToResponseTimeoutMs);
    handlePost(req, res, { token: token!, integration }).catch((error: unknown) => sendPostError(res, error, log));
    return true;
  };
}

/**
 * Sends the error of a post. For a wrong token the answer also has `status`, as the original system's clients expect.
 */
export function sendPostError(res: ServerResponse, error: unknown, log: Log): void {
  const isWrongToken = error instanceof KlatchError && error.code === 'invalid_token';
  sendThrownError(res, error, { log, extraBodyFields: isWrongToken ? { status: 'failure' } : {} });
}
