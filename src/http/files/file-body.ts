import type { IncomingMessage, ServerResponse } from 'node:http';
import { KlatchError } from '../../errors.ts';
import { disableTimeoutsUntilAnswered } from '../deadline.ts';

/** How long the rest of a refused client's body is discarded, so that the client comes to read the answer. */
const LINGER_MS = 2_000;

/** The length that the request announces; null: it is chunked. Throws `invalid_input` for an encoded body. */
export function announcedBytes(req: IncomingMessage): number | null {
  const encoding = req.headers['content-encoding'];
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') {
    const sentence = 'A file is stored as it comes: send it without Content-Encoding';
    throw new KlatchError('unsupported_media', { sentence });
  }
  if (req.headers['transfer-encoding'] !== undefined) return null;
  // Node has checked it: digits, or absent for no body.
  return Number(req.headers['content-length'] ?? 0);
}

/**
 * The body of an upload that was admitted: from here on it may take as long as its bytes flow. A client that waits for
 * 100 Continue gets it.
 */
export function acceptUploadBody(req: IncomingMessage, res: ServerResponse): IncomingMessage {
  disableTimeoutsUntilAnswered(req, res);
  if (req.httpVersion === '1.1' && req.headers.expect?.toLowerCase() === '100-continue') res.writeContinue();
  return req;
}

/** Discards the rest of a body after an answer, for a moment; then the connection ends. */
export function drainBodyBrieflyThenDisconnect(req: IncomingMessage): void {
  if (req.complete || req.destroyed) return;
  req.resume();
  const timer = setTimeout(() => {
    if (!req.complete) req.socket.destroy();
  }, LINGER_MS);
  req.socket.once('close', () => clearTimeout(timer));
  req.once('end', () => clearTimeout(timer));
}
