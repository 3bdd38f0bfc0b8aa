import type { IncomingMessage, ServerResponse } from 'node:http';
import { KlatchError } from '../../errors.ts';
import { disableTimeoutsUntilAnswered } from '../deadline.ts';

/**
 * The time for which the body of a refused client is read and discarded, so that the client gets to read the answer.
 */
const LINGER_MS = 2_000;

/**
 * The length of the body that the request announces; null: the body comes in chunks, without a length. Throws
 * `unsupported_media` for a body that is encoded.
 */
export function announcedBytes(req: IncomingMessage): number | null {
  const encoding = req.headers['content-encoding'];
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') {
    const sentence = 'A file is stored as it comes: send it without Content-Encoding';
    throw new KlatchError('unsupported_media', { sentence });
  }
  if (req.headers['transfer-encoding'] !== undefined) return null;
  // Node has checked Content-Length: it has digits, or is absent if there is no body.
  return Number(req.headers['content-length'] ?? 0);
}

/**
 * Begins to take the body of an admitted upload, and sends 100 Continue if the client waits for it. From this call on,
 * the upload may last as long as bytes flow.
 */
export function beginUploadBody(req: IncomingMessage, res: ServerResponse): IncomingMessage {
  disableTimeoutsUntilAnswered(req, res);
  if (req.httpVersion === '1.1' && req.headers.expect?.toLowerCase() === '100-continue') res.writeContinue();
  return req;
}

/** Reads and discards the rest of a body after the answer for at most LINGER_MS, then closes the connection. */
export function drainBodyBrieflyThenDisconnect(req: IncomingMessage): void {
  if (req.complete || req.destroyed) return;
  req.resume();
  const timer = setTimeout(() => {
    if (!req.complete) req.socket.destroy();
  }, LINGER_MS);
  req.socket.once('close', () => clearTimeout(timer));
  req.once('end', () => clearTimeout(timer));
}
