import cors from 'cors';
import express, { type Express, type RequestHandler } from 'express';
import type { RequestListener } from 'node:http';
import type { Config } from '../config/config.ts';
import { KlatchError } from '../errors.ts';
import { silentLog, type Log } from '../log.ts';
import { TrustedProxies } from '../model/trusted-proxies.ts';
import type { Services } from '../operations/core/services.ts';
import { operationTable } from '../operations/table.ts';
import { aboutKeysOpenApiRoutes } from './about-routes.ts';
import { apiRoutes } from './api-routes.ts';
import { aliasRoutes, suffixRoutes } from './callers/caller-routes.ts';
import { misaddressedPostRoutes } from './callers/misaddressed-posts.ts';
import { ntfyRootRoute } from './callers/ntfy-root.ts';
import { startDeadline } from './deadline.ts';
import { Authenticator } from './authenticator.ts';
import { sessionRoutes } from './browser/session-routes.ts';
import { webRoutes } from './browser/web-routes.ts';
import { exposedFileHeaders, fileRoutes } from './files/file-routes.ts';
import { healthRoutes } from './health-routes.ts';
import { invitePreviewRoutes } from './invite-routes.ts';
import type { LargePostReader } from './large-posts/large-post-reader.ts';
import { sendJson, sendError, errorHandler } from './responses.ts';
import { reverseWebhookRoutes } from './reverse-webhook-routes.ts';
import { createPostHandler, createCachedTokenFastPath, type PostHandler } from './post-handler.ts';
import { TokenAuth } from './token-auth.ts';
import { signInLinkPage } from './sign-in-link-page.ts';
import { webhookRoutes } from './webhook-routes.ts';

/**
 * The HTTP interface while the database is opened and brought up to date. `/v1/status` says that the server is alive,
 * browsers get the page of the browser client, and every other request gets the error `starting`.
 */
export function createStartingApp(config: Config, log: Log): Express {
  const app = express();
  app.disable('x-powered-by');
  app.get('/v1/status', (_req, res) => sendJson(res, 200, { status: 'Ok' }));
  app.use(webRoutes(config, log));
  app.use(() => {
    throw new KlatchError('starting');
  });
  app.use(errorHandler(log));
  return app;
}

/** The HTTP interface. The complete order of its handlers is in this file. */
export function createApp(
  services: Services,
  lifecycle: { isStopping: () => boolean; largePosts: LargePostReader },
): RequestListener {
  const proxies = new TrustedProxies(services.config.http.trustedProxies);
  const handlePost = createPostHandler(services, proxies, lifecycle.largePosts);
  const fastPath = createCachedTokenFastPath(services, handlePost);
  const app = createExpress(services, { handlePost, proxies, isStopping: lifecycle.isStopping });
  return (req, res) => {
    if (lifecycle.isStopping() || !fastPath(req, res)) app(req, res);
  };
}

interface AppDeps {
  readonly handlePost: PostHandler;
  readonly proxies: TrustedProxies;
  readonly isStopping: () => boolean;
}

function createExpress(services: Services, options: AppDeps): Express {
  const { config, log } = services;
  const tokenAuth = new TokenAuth(services, options.proxies);
  const authenticator = new Authenticator(services, options.proxies);
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('case sensitive routing', true);
  app.set('query parser', false);
  app.use(refuseWhileStopping(options.isStopping));
  app.use((req, res, next) => {
    startDeadline(req, res, config.http.requestToResponseTimeoutMs);
    next();
  });
  if (config.http.cors.length > 0) app.use(corsHandler(config.http.cors));
  app.use(requireHost);
  app.use(replacePercentsIfUndecodable);
  const { handlePost } = options;
  const { refusedPosts } = services;
  app.use('/v1/webhooks', webhookRoutes({ tokenAuth, handlePost, refusedPosts, log }));
  app.use(suffixRoutes({ tokenAuth, handlePost, log }));
  app.use('/v1/webhooks', reverseWebhookRoutes(services, tokenAuth, options.proxies));
  app.use('/v1/webhooks', misaddressedPostRoutes({ tokenAuth, refusedPosts }));
  app.use('/v1/groups/invites', invitePreviewRoutes(services, options.proxies));
  // With a silent log: the app that answered during the start has already logged a missing browser client.
  app.use(webRoutes(config, silentLog()));
  app.use('/v1/sign-in', signInLinkPage(config));
  app.use('/v1/session', sessionRoutes(services, authenticator));
  app.use('/v1/api', apiRoutes(services, authenticator, operationTable()));
  app.use('/v1/files', fileRoutes(services, authenticator));
  app.use('/v1', healthRoutes(services));
  app.use('/v1', aboutKeysOpenApiRoutes(services));
  if (config.http.callerPaths) {
    app.use(aliasRoutes({ tokenAuth, handlePost, log }));
    app.use(ntfyRootRoute(services, tokenAuth, handlePost));
  }
  app.use((_req, _res) => {
    throw new KlatchError('not_found');
  });
  app.use(errorHandler(log));
  return app;
}

function corsHandler(origins: readonly string[]): RequestHandler {
  return cors({
    origin: origins.includes('*') ? '*' : [...origins],
    methods: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'],
    // A page of another origin can read only the headers listed here. They say when to repeat a request after a 429 or
    // 503, and where to continue an upload.
    exposedHeaders: ['Retry-After', ...exposedFileHeaders],
    maxAge: 600,
  });
}

/** Refuses requests while the server stops: they still arrive on open connections after the listener has closed. */
function refuseWhileStopping(isStopping: () => boolean): RequestHandler {
  return (_req, res, next) => {
    if (!isStopping()) {
      next();
      return;
    }
    res.setHeader('connection', 'close');
    sendError(res, new KlatchError('stopping'));
  };
}

/** RFC 9112 demands that a request of HTTP/1.1 without Host is refused. */
const requireHost: RequestHandler = (req, _res, next) => {
  if (req.headers.host === undefined && req.httpVersion === '1.1') throw new KlatchError('invalid_request');
  next();
};

/**
 * Replaces each `%` by `!` in a path with broken percent-encoding, which the router would refuse. No token or hook has
 * such a path, so each route answers as for an unknown token or hook.
 */
const replacePercentsIfUndecodable: RequestHandler = (req, _res, next) => {
  try {
    decodeURIComponent(req.path);
  } catch {
    req.url = req.url.replaceAll('%', '!');
  }
  next();
};
