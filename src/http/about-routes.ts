import { Router, type RequestHandler } from 'express';
import { configuredAppIds } from '../config/push-apps.ts';
import type { AddressKind } from '../model/proof-address.ts';
import { announcedEndpoints } from '../operations/server/endpoints.ts';
import { openApiDocument } from '../operations/describe/openapi.ts';
import type { Services } from '../operations/core/services.ts';
import { AboutSigner } from '../operations/server/signed-about.ts';
import { operationTable } from '../operations/table.ts';
import { readBuildId } from './browser/web-files.ts';
import { sendJson, sendMethodNotAllowed } from './responses.ts';

/**
 * Serves `/v1/about` (facts that clients need before they connect, signed), `/v1/keys` (the keys that verify the
 * signatures), and `/v1/openapi.json` (the operations that may be called).
 */
export function aboutKeysOpenApiRoutes(services: Services): Router {
  const { config, version, serverKeys, activations } = services;
  const aboutSigner = new AboutSigner(services);
  const { projectName, registration, limits } = config;
  const sendsCodesTo = (kind: AddressKind): boolean => activations.chooseProvider(kind, undefined) !== null;
  const about = {
    projectName,
    endpoints: announcedEndpoints(services),
    registration,
    version,
    // The push services that devices can be registered with; `webPush` null: this server sends no pushes to browsers.
    push: {
      google: configuredAppIds(config, 'google'),
      apple: configuredAppIds(config, 'apple'),
      webPush: config.webPush?.public ?? null,
    },
    files: { maxBytes: limits.fileBytes },
    // `link` is always true: an administrator can make a sign-in link on every server.
    sign_in: { link: true, email: sendsCodesTo('email'), phone: sendsCodesTo('phone') },
    limits: { text: limits.textCodePoints, attachments: limits.attachmentsPerMessage },
    base_uri: config.http.baseUri,
    build: config.web.webClientEnabled ? readBuildId() : null,
  };
  const keys = serverKeys.map((key) => ({ id: key.id, public: key.public }));
  const router = Router({ caseSensitive: true });
  const routeGet = (path: string, handler: RequestHandler): void => {
    router
      .route(path)
      .get(handler)
      .all((req, res) => sendMethodNotAllowed(req, res, ['GET', 'HEAD']));
  };
  routeGet('/about', (_req, res) => sendJson(res, 200, { ...about, ...aboutSigner.current() }));
  routeGet('/openapi.json', openApiHandler(services));
  routeGet('/keys', (_req, res) => sendJson(res, 200, keys));
  return router;
}

/**
 * The OpenAPI document is made at the first request for it. Making it takes some 20 ms, and most servers get no such
 * request.
 */
function openApiHandler({ config, version }: Services): RequestHandler {
  let document: object | null = null;
  return (_req, res) => {
    document ??= openApiDocument(operationTable().values(), { version, url: config.http.baseUri });
    sendJson(res, 200, document);
  };
}
