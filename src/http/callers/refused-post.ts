import type { IncomingMessage, ServerResponse } from 'node:http';
import type { KlatchError } from '../../errors.ts';
import { publicError } from '../../operations/core/database-errors.ts';
import type { RefusedPostRecorder } from '../../operations/core/refused-post-recorder.ts';
import type { Integration } from '../../storage/groups/integrations.ts';
import { formatNameOf } from './caller-route.ts';

/** Records a post that is about to be answered with `error`, if it is refused for its content. */
export function recordIfRefused(
  recorder: RefusedPostRecorder,
  { req, res, integration }: { req: IncomingMessage; res: ServerResponse; integration: Integration },
  error: unknown,
): void {
  // A sender that left, or that already got a time-out as its answer, does not get this one.
  if (res.headersSent || res.destroyed) return;
  const shown = publicError(error);
  if (!isForItsContent(shown)) return;
  recorder.record({
    conversationId: integration.conversationId,
    userAgent: req.headers['user-agent'] ?? null,
    format: formatNameOf(req),
    code: shown.code,
    sentence: shown.message,
  });
}

/** Decides by the status, so that a new kind of error counts too. An error that a retry can mend has `Retry-After`. */
function isForItsContent({ code, status, retryAfterS }: KlatchError): boolean {
  // A token that was replaced while the post arrived belongs to no group.
  return status >= 400 && status < 500 && retryAfterS === null && code !== 'invalid_token';
}
