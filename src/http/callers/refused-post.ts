import type { IncomingMessage, ServerResponse } from 'node:http';
import type { KlatchError } from '../../errors.ts';
import { publicError } from '../../operations/core/database-errors.ts';
import type { RefusedPostRecorder } from '../../operations/core/refused-post-recorder.ts';
import type { Integration } from '../../storage/groups/integrations.ts';
import { formatNameOf } from './caller-route.ts';

/** Records a post that is about to be answered with `error`, if the error is about the post's content. */
export function recordIfRefused(
  recorder: RefusedPostRecorder,
  { req, res, integration }: { req: IncomingMessage; res: ServerResponse; integration: Integration },
  error: unknown,
): void {
  // Records nothing for a client that has left, or that was already answered with a time-out: it does not get this
  // error.
  if (res.headersSent || res.destroyed) return;
  const shown = publicError(error);
  if (!isAboutPostContent(shown)) return;
  recorder.record({
    conversationId: integration.conversationId,
    userAgent: req.headers['user-agent'] ?? null,
    format: formatNameOf(req),
    code: shown.code,
    sentence: shown.message,
  });
}

/**
 * Whether an error is about the content of a post: every status 4xx, so that a new error is included. An error with
 * `Retry-After` is not: a repeat of the post can succeed.
 */
function isAboutPostContent({ code, status, retryAfterS }: KlatchError): boolean {
  // `invalid_token`: the token was replaced while the post arrived. Posts with an unknown token are not recorded.
  return status >= 400 && status < 500 && retryAfterS === null && code !== 'invalid_token';
}
