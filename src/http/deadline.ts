import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { KlatchError, SAFE_REPEAT_HINT } from '../errors.ts';
import { originalUrlOf, sendError } from './responses.ts';

/**
 * Paths of requests that take no Idempotency-Key: those about reverse webhooks, which post no message, and those of
 * operations.
 */
const PATHS_WITHOUT_IDEMPOTENCY_KEY = /^\/v1\/(?:api\/|webhooks\/[^/?]*\/reverse(?:[/?]|$))/;

/** A connection without traffic for this long during a request is cut: its client does not read the answer. */
export const STALL_TIMEOUT_MS = 30_000;

type TimedRequest = IncomingMessage & { deadline?: NodeJS.Timeout };
/** A connection with the request on it that is exempt from the deadline. */
type ExemptSocket = Socket & { exemptRequest?: IncomingMessage };

/** Sends an error if the request has no answer within `timeoutMs`. */
export function startDeadline(req: TimedRequest, res: ServerResponse, timeoutMs: number): void {
  const timer = setTimeout(() => sendError(res, timeoutError(req, res)), timeoutMs);
  req.deadline = timer;
  res.once('close', () => clearTimeout(timer));
}

/**
 * Removes the deadline of a request that transfers a file. The calling code bounds the request by the speed of its
 * bytes instead.
 */
export function exemptFromDeadline(req: TimedRequest): void {
  clearTimeout(req.deadline);
  (req.socket as ExemptSocket).exemptRequest = req;
}

/**
 * Removes the deadline of an upload. Until the answer, its connection has no time-out either: a slow store stalls the
 * connection too. Meanwhile the speed of the upload's bytes and the time-outs of the store bound the request.
 */
export function disableTimeoutsUntilAnswered(req: TimedRequest, res: ServerResponse): void {
  exemptFromDeadline(req);
  const { socket } = req;
  socket.setTimeout(0);
  // The time-out is restored when the answer ends, before Node sets its time-out for the wait for the next request.
  res.once('prefinish', () => socket.setTimeout(STALL_TIMEOUT_MS));
}

/** Whether this connection is receiving the body of a request that is exempt from the deadline. */
export function isReceivingExemptBody({ exemptRequest }: ExemptSocket): boolean {
  return exemptRequest !== undefined && !exemptRequest.complete;
}

function timeoutError(req: IncomingMessage, res: ServerResponse): KlatchError {
  if (!req.complete) {
    // Closing the connection also stops the reading of the body, so that nothing is done after this answer.
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
