import { Router, type RequestHandler } from 'express';
import { KlatchError } from '../errors.ts';
import { messageId } from '../model/ids.ts';
import { Rate } from '../operations/rate.ts';
import type { Services } from '../operations/services.ts';
import { awaitTurn, postMessage } from '../operations/webhooks.ts';
import { readBody } from './body.ts';
import { answer, problem, refuseMethod } from './problems.ts';
import { hopsOf, idempotencyKey } from './send-headers.ts';
import { parseSend } from './send-input.ts';
import type { TokenAccess, TokenHandler } from './token-access.ts';

const GROUPS_WITH_A_RATE = 100_000;

/** `POST /v1/webhooks/:token` and `/status`. */
export function webhookRoutes(services: Services, access: TokenAccess): Router {
  const router = Router({ caseSensitive: true });
  const withToken = access.remembered();
  const send = sendHandler(services);
  router
    .route('/:token')
    .post(withFailureStatus(withToken(send)))
    .all(withToken(async (req, res) => refuseMethod(req, res, ['POST'])));
  router.all('/:token/status', tokenStatus(access));
  return router;
}

function sendHandler(services: Services): TokenHandler {
  const { limits, http } = services.config;
  const rate = new Rate<number>({ perSecond: limits.tokenRate, burst: limits.tokenBurst, keys: GROUPS_WITH_A_RATE });
  return async (req, res, access) => {
    if (access.integration.archived) throw new KlatchError('group_archived');
    await awaitTurn(rate, access.integration, limits.tokenWaitMs);
    const body = await readBody(req, res, http.maxBodyBytes);
    const input = await parseSend(body, req.headers['content-type'], limits);
    const hops = hopsOf(req.headers, limits.hops);
    const message = { ...input, ...idempotencyKey(req.headers, body), hops };
    const seq = await postMessage(services, access, message);
    const id = messageId(access.integration.conversationId, seq);
    // One body that passes every known caller's check.
    answer(res, 200, { status: 'Ok', ok: true, success: true, id });
  };
}

/** A wrong token on send carries `status` beside the message, as the original system's clients expect. */
function withFailureStatus(handler: RequestHandler): RequestHandler {
  return async (req, res, next) => {
    try {
      await handler(req, res, next);
    } catch (error) {
      if (!(error instanceof KlatchError) || error.code !== 'wrong_token') throw error;
      problem(res, error, { status: 'failure' });
    }
  };
}

/** Whether a token exists, by any method; here alone an unknown one is 410. */
function tokenStatus(access: TokenAccess): RequestHandler {
  return async (req, res) => {
    if ((await access.confirm(req)) !== null) answer(res, 200, { status: 'Ok' });
    else answer(res, 410, { message: 'This token no longer exists(or never existed)' });
  };
}
