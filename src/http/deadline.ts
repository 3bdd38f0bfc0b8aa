import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { KlatchError, SAFE_REPEAT_HINT } from '../errors.ts';
import { originalUrlOf, sendError } from './responses.ts';

/** Requests about reverse webhooks, which post no message, and operations, which take no Idempotency-Key. */
const PATHS_WITHOUT_IDEMPOTENCY_KEY = /^\/v1\/(?:api\/|webhooks\/[^/?]*\/reverse(?:[/?]|$))/;

/** A connection on which nothing moved for this long during a request: its client does not read its answer. */
export const STALL_TIMEOUT_MS = 30_000;

/** A request with its deadline. */
type TimedRequest = IncomingMessage & { deadline?: NodeJS.Timeout };
/** A connection with the request on it whose body may take its time. */
type ExemptSocket = Socket & { exemptRequest?: IncomingMessage };

/** The request has its answer within this time, whatever becomes of it. */
export function startDeadline(req: TimedRequest, res: ServerResponse, timeoutMs: number): void {
  const timer = setTimeout(() => sendError(res, timeoutError(req, res)), timeoutMs);
  req.deadline = timer;
  res.once('close', () => clearTimeout(timer));
}

/**
 * From here on the request may take as long as it takes: files do. Whoever calls this bounds it otherwise, by how fast
 * its bytes come and go.
 */
export function exemptFromDeadline(req: TimedRequest): void {
  clearTimeout(req.deadline);
  (req.socket as ExemptSocket).exemptRequest = req;
}

/**
 * The same for an upload, whose connection stands still as well while the store is slow: how fast its bytes come where it
 * is not, and the time-outs of the store, are its bounds until it is answered.
 */
export function disableTimeoutsUntilAnswered(req: TimedRequest, res: ServerResponse): void {
  exemptFromDeadline(req);
  const { socket } = req;
  socket.setTimeout(0);
  // From the end of the answer on, and before Node gives the connection its time until the next request.
  res.once('prefinish', () => socket.setTimeout(STALL_TIMEOUT_MS));
}

/** Whether the request whose body comes on this connection may take its time. */
export function isDeadlineExempt({ exemptRequest }: ExemptSocket): boolean {
  return exemptRequest !== undefined && !exemptRequest.complete;
}

function timeoutError(req: IncomingMessage, res: ServerResponse): KlatchError {
  if (!req.complete) {
    // Ends the reading of the body as well, so that nothing is done after this answer.
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
