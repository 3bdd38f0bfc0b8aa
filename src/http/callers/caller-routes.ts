import { Router, type Request, type RequestHandler } from 'express';
import { KlatchError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { PostHandler } from '../post-handler.ts';
import { sendAnswer, sendMethodNotAllowed } from '../responses.ts';
import type { TokenAuth } from '../token-auth.ts';
import { withPostErrors } from '../webhook-routes.ts';
import {
  aliases,
  formatNamed,
  informationPaths,
  suffixes,
  type CallerPath,
  type InformationPath,
} from './caller-paths.ts';
import { setCallerRoute } from './caller-route.ts';

interface CallerRouteDeps {
  readonly tokenAuth: TokenAuth;
  readonly handlePost: PostHandler;
  readonly log: Log;
}

/** Serves `/v1/webhooks/:token/:suffix` for each format. Other suffixes are left to the routes that follow. */
export function suffixRoutes(deps: CallerRouteDeps): Router {
  const router = Router({ caseSensitive: true });
  for (const suffix of suffixes) addRoute(router, suffix, deps);
  return router;
}

/**
 * Serves the paths of other products at the root of the server, such as `/hooks/:token`. `http.caller-paths` turns them
 * off.
 */
export function aliasRoutes(deps: CallerRouteDeps): Router {
  const router = Router({ caseSensitive: true });
  for (const alias of aliases) addRoute(router, alias, deps);
  for (const each of informationPaths) {
    const inform = informationHandler(each, deps);
    router
      .route(each.path)
      .get(inform)
      .post(inform)
      .all((req, res) => sendMethodNotAllowed(req, res, ['GET', 'POST']));
  }
  return router;
}

function addRoute(
  router: Router,
  { path, format: name, dialect, information }: CallerPath,
  deps: CallerRouteDeps,
): void {
  const format = formatNamed(name);
  const post = withPostErrors(deps.tokenAuth.withPossiblyCachedToken(tokenOf)(deps.handlePost), deps.log);
  const setRouteThenHandlePost: RequestHandler = (req, res, next) => {
    setCallerRoute(req, { format, dialect });
    return post(req, res, next);
  };
  const route = router.route(path).post(setRouteThenHandlePost).put(setRouteThenHandlePost);
  if (information !== undefined) route.get(informationHandler({ dialect, information }, deps));
  const allowed = information === undefined ? ['POST', 'PUT'] : ['GET', 'POST', 'PUT'];
  route.all((req, res) => sendMethodNotAllowed(req, res, allowed));
}

/**
 * Handles a request for information about a group. The request is refused if the token is not valid, or if the group is
 * archived.
 */
function informationHandler(
  { dialect, information }: Pick<InformationPath, 'information'> & Pick<CallerPath, 'dialect'>,
  { tokenAuth, log }: CallerRouteDeps,
): RequestHandler {
  const inform = tokenAuth.withVerifiedToken()(async (_req, res, { integration }) => {
    if (integration.archived) throw new KlatchError('group_archived');
    sendAnswer(res, information(integration.conversationId));
  });
  const handler = withPostErrors(inform, log);
  return (req, res, next) => {
    setCallerRoute(req, { format: null, dialect });
    return handler(req, res, next);
  };
}

const BEARER_PATTERN = /^Bearer +([\w-]+)$/i;

/** The token in the path, else in the query, in X-Gotify-Key or in Authorization; empty if none of them has one. */
function tokenOf(req: Request): string {
  const inPath = req.params['token'];
  if (typeof inPath === 'string') return inPath;
  const { authorization } = req.headers;
  const queryStart = req.url.indexOf('?');
  const inQuery = queryStart === -1 ? null : new URLSearchParams(req.url.slice(queryStart)).get('token');
  return inQuery ?? req.get('x-gotify-key') ?? BEARER_PATTERN.exec(authorization ?? '')?.[1] ?? '';
}
