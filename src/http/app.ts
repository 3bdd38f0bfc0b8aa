import cors from 'cors';
import express, { type Express, type RequestHandler } from 'express';
import { KlatchError } from '../errors.ts';
import type { Services } from '../operations/services.ts';
import { healthRoutes } from './health.ts';
import { problem, renderErrors } from './problems.ts';
import { reverseWebhookRoutes } from './reverse-webhooks.ts';
import { webhookRoutes } from './webhooks.ts';

/** The HTTP interface: this is the whole order of things. */
export function createApp(services: Services, life: { stopping: () => boolean }): Express {
  const { config, log } = services;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('case sensitive routing', true);
  app.set('query parser', false);
  app.use(refuseWhileStopping(life.stopping));
  app.use(endInTime(config.http.requestTimeoutMs));
  if (config.http.cors.length > 0) app.use(corsFor(config.http.cors));
  app.use('/v1/webhooks', webhookRoutes(services));
  app.use('/v1/webhooks', reverseWebhookRoutes(services));
  app.use('/v1', healthRoutes(services));
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

/** Every request has its answer within this time. One that comes to its end here may have been posted. */
function endInTime(timeoutMs: number): RequestHandler {
  return (_req, res, next) => {
    const timer = setTimeout(() => problem(res, new KlatchError('outcome_unknown')), timeoutMs);
    res.once('close', () => clearTimeout(timer));
    next();
  };
}
