import type { IncomingMessage, ServerResponse } from 'node:http';
import { KlatchError, SAFE_REPEAT } from '../errors.ts';
import { problem } from './problems.ts';

/** Requests about reverse webhooks, which post no message. */
const MANAGES = /^\/v1\/webhooks\/[^/?]*\/reverse(?:[/?]|$)/;

/** The request has its answer within this time, whatever becomes of it. */
export function endInTime(req: IncomingMessage, res: ServerResponse, timeoutMs: number): void {
  const timer = setTimeout(() => problem(res, tooLate(req, res)), timeoutMs);
  res.once('close', () => clearTimeout(timer));
}

function tooLate(req: IncomingMessage, res: ServerResponse): KlatchError {
  if (!req.complete) {
    // Ends the reading of the body as well, so that nothing is done after this answer.
    if (!res.headersSent) res.setHeader('connection', 'close');
    return new KlatchError('request_timeout');
  }
  if (req.method === 'GET' || req.method === 'HEAD') return new KlatchError('database_away');
  const sentence =
    req.method === 'POST' && !MANAGES.test(req.url ?? '')
      ? `This took too long: it may have been posted. ${SAFE_REPEAT}`
      : 'This took too long: it may have been done; look before you repeat it';
  return new KlatchError('outcome_unknown', { sentence });
}
