import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { KlatchError, SAFE_REPEAT_HINT } from '../errors.ts';
import { originalUrlOf, sendError } from './responses.ts';

/** Requests about reverse webhooks, which post no message, and operations, which take no Idempotency-Key. */
const PATHS_WITHOUT_IDEMPOTENCY_KEY = /^\/v1\/(?:api\/|webhooks\/[^/?]*\/reverse(?:[/?]|$))/;

/** A connection without traffic for this long during a request is cut: its client does not read the answer. */
export const STALL_TIMEOUT_MS = 30_000;

/** A request with its deadline. */
type TimedRequest = IncomingMessage & { deadline?: NodeJS.Timeout };
/** A connection with the request on it that is exempt from the deadline. */
type ExemptSocket = Socket & { exemptRequest?: IncomingMessage };

/** Sends an error if the request has no answer within this time. */
export function startDeadline(req: TimedRequest, res: ServerResponse, timeoutMs: number): void {
  const timer = setTimeout(() => sendError(res, timeoutError(req, res)), timeoutMs);
  req.deadline = timer;
  res.once('close', () => clearTimeout(timer));
}

/**
 * Removes the deadline of a request that transfers a file. The calling code bounds the request otherwise, by how fast
 * its bytes come and go.
 */
export function exemptFromDeadline(req: TimedRequest): void {
  clearTimeout(req.deadline);
  (req.socket as ExemptSocket).exemptRequest = req;
}

/**
 * Removes the deadline of an upload and the time-out of its connection, which also stalls while the store is slow.
 * Until the answer, the speed of the upload's bytes and the time-outs of the store bound it.
 */
export function disableTimeoutsUntilAnswered(req: TimedRequest, res: ServerResponse): void {
  exemptFromDeadline(req);
  const { socket } = req;
  socket.setTimeout(0);
  // Restored at the end of the answer, before Node sets the time-out until the next request.
  res.once('prefinish', () => socket.setTimeout(STALL_TIMEOUT_MS));
}

/** Whether the body that comes on this connection is exempt from the deadline. */
export function isDeadlineExempt({ exemptRequest }: ExemptSocket): boolean {
  return exemptRequest !== undefined && !exemptRequest.complete;
}

function timeoutError(req: IncomingMessage, res: ServerResponse): KlatchError {
  if (!req.complete) {
    // Closing also ends the reading of the body, so that nothing is done after this answer.
    if (!res.headersSent) res.setHeader('connection', 'close');
    return new KlatchError('request_timeout');
  }
  if (req.method === 'GET' || req.method === 'HEAD') return new KlatchError('database_unavailable');
  const sentence =
    req.method === 'POST' && !PATHS_WITHOUT_IDEMPOTENCY_KEY.test(originalUrlOf(req))
      ? `This took too long: it may have been posted. ${SAFE_REPEAT_HINT}`
      : 'This took too long: it may have been done; look before you repeat it';
  return new KlatchError('outcome_unknown', { sentence });
}
