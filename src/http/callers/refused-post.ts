import type { IncomingMessage, ServerResponse } from 'node:http';
import type { KlatchError } from '../../errors.ts';
import { publicError } from '../../operations/core/database-errors.ts';
import type { RefusedPostRecorder } from '../../operations/core/refused-post-recorder.ts';
import type { Integration } from '../../storage/groups/integrations.ts';
import { formatNameOf } from './caller-route.ts';

/** Records a post that is about to be answered with `error`, if it is refused for what it holds. */
export function recordIfRefused(
  recorder: RefusedPostRecorder,
  { req, res, integration }: { req: IncomingMessage; res: ServerResponse; integration: Integration },
  error: unknown,
): void {
  // Whoever left, or was answered in time that it took too long, gets no such answer.
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

/** By its status, so that an error that is new counts too. What a repeat can mend is not lost, and has `Retry-After`. */
function isForItsContent({ code, status, retryAfterS }: KlatchError): boolean {
  // A token that was replaced while the post arrived is one that nobody knows.
  return status >= 400 && status < 500 && retryAfterS === null && code !== 'invalid_token';
}
