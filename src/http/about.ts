import { Router, type RequestHandler } from 'express';
import type { Services } from '../operations/services.ts';
import { Statement } from '../operations/statement.ts';
import { answer, refuseMethod } from './problems.ts';

/** `/v1/about` (what clients need before they connect, signed) and `/v1/keys` (what the signatures are verified with). */
export function aboutRoutes(services: Services): Router {
  const { config, version, serverKeys } = services;
  const statement = new Statement(services);
  const about = { projectName: config.projectName, endpoints: config.publicEndpoints, version };
  const keys = serverKeys.map((key) => ({ id: key.id, public: key.public }));
  const router = Router({ caseSensitive: true });
  const get = (path: string, handler: RequestHandler): void => {
    router
      .route(path)
      .get(handler)
      .all((req, res) => refuseMethod(req, res, ['GET', 'HEAD']));
  };
  get('/about', (_req, res) => answer(res, 200, { ...about, ...statement.current() }));
  get('/keys', (_req, res) => answer(res, 200, keys));
  return router;
}
