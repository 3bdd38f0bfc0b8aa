import { Router, type Response } from 'express';
import type { Config } from '../config/config.ts';
import { pageHeaders, renderSignIn } from './invite-page.ts';
import { jsonResponseHeaders, sendMethodNotAllowed } from './responses.ts';

/** Serves `GET /v1/sign-in`, the page that a sign-in link opens in a browser. The page is the same for every link. */
export function signInLinkPage(config: Config): Router {
  const html = renderSignIn(config);
  const headers = { ...jsonResponseHeaders, ...pageHeaders(), 'content-length': Buffer.byteLength(html) };
  const router = Router({ caseSensitive: true });
  router
    .route('/')
    .get((req, res: Response) => {
      res.writeHead(200, headers);
      res.end(req.method === 'HEAD' ? undefined : html);
    })
    .all((req, res) => sendMethodNotAllowed(req, res, ['GET', 'HEAD']));
  return router;
}
