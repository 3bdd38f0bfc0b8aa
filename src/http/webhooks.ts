import { Router, type RequestHandler } from 'express';
import type { Log } from '../log.ts';
import { answer, refuseMethod } from './problems.ts';
import { sendProblem, type Send } from './send.ts';
import type { TokenAccess } from './token-access.ts';

/** `POST /v1/webhooks/:token` and `/status`. */
export function webhookRoutes(options: { access: TokenAccess; send: Send; log: Log }): Router {
  const { access, send, log } = options;
  const router = Router({ caseSensitive: true });
  router
    .route('/:token')
    .post(withSendProblems(access.remembered()(send), log))
    .all(access.confirmed()(async (req, res) => refuseMethod(req, res, ['POST'])));
  router.all('/:token/status', tokenStatus(access));
  return router;
}

function withSendProblems(handler: RequestHandler, log: Log): RequestHandler {
  return async (req, res, next) => {
    try {
      await handler(req, res, next);
    } catch (error) {
      sendProblem(res, error, log);
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
