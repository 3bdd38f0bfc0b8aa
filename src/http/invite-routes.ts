import { Router, type Request, type Response } from 'express';
import type { Config } from '../config/config.ts';
import type { TrustedProxies } from '../model/trusted-proxies.ts';
import { publicError } from '../operations/core/database-errors.ts';
import { readInvitePreview } from '../operations/groups/invite-preview.ts';
import { inviteTokenOf } from '../operations/groups/invites.ts';
import type { Services } from '../operations/core/services.ts';
import { pageHeaders, renderInvite, renderInviteError } from './invite-page.ts';
import { sendJson, jsonResponseHeaders, tagErrorCode, sendMethodNotAllowed, sendThrownError } from './responses.ts';
import { AuthThrottle } from './auth-throttle.ts';

/**
 * Serves `GET /v1/groups/invites/<token>`: the group of an invitation, as JSON for programs and as a page for people.
 */
export function invitePreviewRoutes(services: Services, proxies: TrustedProxies): Router {
  const { config, log } = services;
  const authThrottle = new AuthThrottle(config.limits.unknownTokensPerSecondPerSource);
  const headers = pageHeaders();
  const pageConfig = { ...config, registration: registrationOf(services) };
  const router = Router({ caseSensitive: true });

  const sendPage = (res: Response, status: number, html: string, retryAfterS: number | null = null): void => {
    if (res.headersSent || res.destroyed) return;
    const retry = retryAfterS === null ? {} : { 'retry-after': String(retryAfterS) };
    const length = { 'content-length': Buffer.byteLength(html) };
    res.writeHead(status, { ...jsonResponseHeaders, ...headers, ...retry, ...length });
    res.end(res.req.method === 'HEAD' ? undefined : html);
  };

  const showPreview = async (req: Request, res: Response): Promise<void> => {
    const token = req.params['token'] as string;
    res.setHeader('vary', 'Accept');
    const wantsPage = req.accepts(['application/json', 'text/html']) === 'text/html';
    try {
      const preview = await readInvitePreview(services, token);
      if (wantsPage) sendPage(res, 200, renderInvite(pageConfig, preview, linksOf(config, inviteTokenOf(token))));
      else sendJson(res, 200, preview);
    } catch (error) {
      const shown = publicError(error);
      if (shown.code === 'invalid_invite') await authThrottle.delayRejection(proxies.sourceKeyOf(req));
      if (!wantsPage || shown.code === 'internal') {
        sendThrownError(res, error, { log });
        return;
      }
      tagErrorCode(res, shown.code);
      sendPage(res, shown.status, renderInviteError(config, shown.message), shown.retryAfterS);
    }
  };

  router
    .route('/:token')
    .get(showPreview)
    .all((req, res) => sendMethodNotAllowed(req, res, ['GET', 'HEAD']));
  return router;
}

/** If the server cannot send codes, a sign-up needs an invitation even where the registration is open. */
function registrationOf({ config, activations }: Services): Config['registration'] {
  return config.registration === 'open' && activations.providers.length === 0 ? 'invite' : config.registration;
}

/** In `joinLink` the token is after the #. Browsers send that part to no server, so no proxy logs it. */
function linksOf({ inviteBaseUri, http, web }: Config, token: string): { link: string; joinLink: string | null } {
  return {
    link: `${inviteBaseUri}/${token}`,
    joinLink: web.webClientEnabled ? `${http.baseUri}/join#${token}` : null,
  };
}
