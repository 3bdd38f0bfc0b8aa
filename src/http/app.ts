import cors from 'cors';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import { KlatchError, SAFE_REPEAT } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Services } from '../operations/services.ts';
import { aboutRoutes } from './about.ts';
import { healthRoutes } from './health.ts';
import { answer, problem, renderErrors } from './problems.ts';
import { reverseWebhookRoutes } from './reverse-webhooks.ts';
import { TokenAccess } from './token-access.ts';
import { webhookRoutes } from './webhooks.ts';

/** What is answered while the database is opened and brought up to date: alive, and not ready. */
export function createStartingApp(log: Log): Express {
  const app = express();
  app.disable('x-powered-by');
  app.get('/v1/status', (_req, res) => answer(res, 200, { status: 'Ok' }));
  app.use(() => {
    throw new KlatchError('starting');
  });
  app.use(renderErrors(log));
  return app;
}

/** The HTTP interface: this is the whole order of things. */
export function createApp(services: Services, life: { stopping: () => boolean }): Express {
  const { config, log } = services;
  const access = new TokenAccess(services);
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('case sensitive routing', true);
  app.set('query parser', false);
  app.set('trust proxy', [...config.http.trustedProxies]);
  app.use(refuseWhileStopping(life.stopping));
  app.use(endInTime(config.http.requestTimeoutMs));
  if (config.http.cors.length > 0) app.use(corsFor(config.http.cors));
  app.use(requireHost);
  app.use(readablePath);
  app.use('/v1/webhooks', webhookRoutes(services, access));
  app.use('/v1/webhooks', reverseWebhookRoutes(services, access));
  app.use('/v1', healthRoutes(services));
  app.use('/v1', aboutRoutes(services));
  app.use((_req, _res) => {
    throw new KlatchError('not_found');
  });
  app.use(renderErrors(log));
  return app;
}

function corsFor(origins: readonly string[]): RequestHandler {
  return cors({
    origin: origins.includes('*') ? '*' : [...origins],
    methods: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'],
    maxAge: 600,
  });
}

/** Requests on connections that were kept open still arrive after the listener has closed. */
function refuseWhileStopping(stopping: () => boolean): RequestHandler {
  return (_req, res, next) => {
    if (!stopping()) {
      next();
      return;
    }
    res.setHeader('connection', 'close');
    problem(res, new KlatchError('stopping'));
  };
}

/** Every request has its answer within this time. */
function endInTime(timeoutMs: number): RequestHandler {
  return (req, res, next) => {
    const timer = setTimeout(() => problem(res, tooLate(req, res)), timeoutMs);
    res.once('close', () => clearTimeout(timer));
    next();
  };
}

function tooLate(req: Request, res: Response): KlatchError {
  if (!req.complete) {
    // Ends the reading of the body as well, so that nothing is done after this answer.
    if (!res.headersSent) res.setHeader('connection', 'close');
    return new KlatchError('request_timeout');
  }
  if (req.method === 'GET' || req.method === 'HEAD') return new KlatchError('database_away');
  const sentence =
    req.method === 'POST'
      ? `This took too long: it may have been posted. ${SAFE_REPEAT}`
      : 'This took too long: it may have been done; look before you repeat it';
  return new KlatchError('outcome_unknown', { sentence });
}

/** RFC 9112 demands the refusal. */
const requireHost: RequestHandler = (req, _res, next) => {
  if (req.headers.host === undefined && req.httpVersion === '1.1') throw new KlatchError('invalid_request');
  next();
};

/**
 * A path with broken percent-encoding names nothing. Without its percent signs it still does not, and each route gives
 * its own answer about a token or a hook that it does not know.
 */
const readablePath: RequestHandler = (req, _res, next) => {
  try {
    decodeURIComponent(req.path);
  } catch {
    req.url = req.url.replaceAll('%', '!');
  }
  next();
};
