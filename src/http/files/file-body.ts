import type { IncomingMessage, ServerResponse } from 'node:http';
import { KlatchError } from '../../errors.ts';
import { disableTimeoutsUntilAnswered } from '../deadline.ts';

/** How long what a refused client still sends is read past, so that it comes to read the answer. */
const LINGER_MS = 2_000;

/** The length that the request announces; null: it comes in chunks. Throws `invalid_input` for a body that is encoded. */
export function announcedBytes(req: IncomingMessage): number | null {
  const encoding = req.headers['content-encoding'];
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') {
    const sentence = 'A file is stored as it comes: send it without Content-Encoding';
    throw new KlatchError('unsupported_media', { sentence });
  }
  if (req.headers['transfer-encoding'] !== undefined) return null;
  // Node has looked at it: digits, or nothing for no body.
  return Number(req.headers['content-length'] ?? 0);
}

/**
 * The body of an upload that was admitted: from here on it may take as long as its bytes flow, and a client that waits
 * for it is told to send them.
 */
export function acceptUploadBody(req: IncomingMessage, res: ServerResponse): IncomingMessage {
  disableTimeoutsUntilAnswered(req, res);
  if (req.httpVersion === '1.1' && req.headers.expect?.toLowerCase() === '100-continue') res.writeContinue();
  return req;
}

/** Reads past what is left of a body behind an answer, for a moment; then the connection ends. */
export function drainBodyBrieflyThenDisconnect(req: IncomingMessage): void {
  if (req.complete || req.destroyed) return;
  req.resume();
  const timer = setTimeout(() => {
    if (!req.complete) req.socket.destroy();
  }, LINGER_MS);
  req.socket.once('close', () => clearTimeout(timer));
  req.once('end', () => clearTimeout(timer));
}
