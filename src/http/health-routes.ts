import { Router, type RequestHandler } from 'express';
import { KlatchError } from '../errors.ts';
import type { Services } from '../operations/core/services.ts';
import { sendJson, sendMethodNotAllowed } from './responses.ts';

const DATABASE_PING_TIMEOUT_MS = 1_000;
const DATABASE_PING_CACHE_TTL_MS = 250;

/**
 * Serves `/v1/status` (the server is alive) and `/v1/ready` (it can do its work). Also answers requests to `/v1/live`
 * that do not ask for WebSocket.
 */
export function healthRoutes(services: Services): Router {
  const router = Router({ caseSensitive: true });
  const get = (path: string, handler: RequestHandler): void => {
    router
      .route(path)
      .get(handler)
      .all((req, res) => sendMethodNotAllowed(req, res, ['GET', 'HEAD']));
  };
  get('/status', (_req, res) => sendJson(res, 200, { status: 'Ok' }));
  get('/ready', readiness(services));
  get('/live', (_req, res) => {
    res.setHeader('upgrade', 'websocket');
    sendJson(res, 426, {
      message: 'This speaks WebSocket: a proxy before the server has to pass the Upgrade header on',
    });
  });
  return router;
}

/**
 * Handles `/v1/ready` with a ping to the database, whose result all requests of the next 250 ms share. A database that
 * answers may still refuse writes. After a failed write, the message log has to write successfully before the server is
 * ready again.
 */
function readiness({ database, messageLog }: Services): RequestHandler {
  let pingedAtMs = -DATABASE_PING_CACHE_TTL_MS;
  let latestPing: Promise<void> | null = null;
  return async (_req, res) => {
    if (latestPing === null || performance.now() - pingedAtMs > DATABASE_PING_CACHE_TTL_MS) {
      pingedAtMs = performance.now();
      latestPing = database.ping(DATABASE_PING_TIMEOUT_MS);
    }
    try {
      await latestPing;
    } catch (cause) {
      throw new KlatchError('database_unavailable', { cause });
    }
    if (messageLog.isSuspended) {
      const sentence = 'The database has accepted no message since a write failed: the server retries by itself';
      throw new KlatchError('database_unavailable', { sentence });
    }
    sendJson(res, 200, { status: 'Ok' });
  };
}
