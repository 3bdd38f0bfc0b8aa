import { Router } from 'express';
import { ntfy } from '../../callers/ntfy.ts';
import { isObject } from '../../callers/core/values.ts';
import { KlatchError } from '../../errors.ts';
import { ANYBODY_OPERATION_LIMITS } from '../../operations/core/input-limits.ts';
import { parseJson } from '../../operations/core/parse-json.ts';
import type { Services } from '../../operations/core/services.ts';
import { bodySizeLimit, readBody } from '../body.ts';
import { decodeUtf8 } from '../json-body.ts';
import type { PostHandler } from '../post-handler.ts';
import type { TokenAuth } from '../token-auth.ts';
import { withPostErrors } from '../webhook-routes.ts';
import { ntfyDialect } from './answer-dialects.ts';
import { setCallerRoute } from './caller-route.ts';

const TOKEN_PATTERN = /^[\w-]{16,128}$/;

/**
 * Serves `POST /`, as programs post to a server of ntfy: the token is the body's `topic`. The body is read before the
 * token is known, so the limits of anonymous callers apply. A body without a topic gets `not_found`.
 */
export function ntfyRootRoute(services: Services, tokenAuth: TokenAuth, handlePost: PostHandler): Router {
  const { config, log } = services;
  const size = bodySizeLimit(config.http, ANYBODY_OPERATION_LIMITS);
  const router = Router({ caseSensitive: true });
  const post = withPostErrors(async (req, res, next) => {
    const body = await readBody(req, res, size);
    const { value } = parseJson(decodeUtf8(body), ANYBODY_OPERATION_LIMITS, 'The body');
    const topic = isObject(value) ? value['topic'] : undefined;
    if (typeof topic !== 'string') throw new KlatchError('not_found');
    setCallerRoute(req, { format: ntfy, dialect: ntfyDialect });
    // A topic that cannot be a token costs its sender as much as an unknown token.
    const token = TOKEN_PATTERN.test(topic) ? topic : '';
    await tokenAuth.withPossiblyCachedToken(() => token)((request, answer, grant) =>
      handlePost(request, answer, grant, body),
    )(req, res, next);
  }, log);
  // `router.post` is not used: with it, Express would answer OPTIONS.
  router.all('/', (req, res, next) => (req.method === 'POST' || req.method === 'PUT' ? post(req, res, next) : next()));
  return router;
}
