import { Router, type Request, type RequestHandler, type Response } from 'express';
import { KlatchError } from '../errors.ts';
import { callerSource } from '../operations/core/caller.ts';
import { limitsOf } from '../operations/core/input-limits.ts';
import { authorizeCaller, callOperation } from '../operations/core/call-operation.ts';
import type { Operation } from '../operations/core/operation.ts';
import type { Services } from '../operations/core/services.ts';
import { bodySizeLimit, readBody } from './body.ts';
import { setAuthChallenge, type Authenticator } from './authenticator.ts';
import { parseJsonBodyAsInput } from './json-body.ts';
import { sendJson, sendMethodNotAllowed, sendThrownError } from './responses.ts';

/**
 * Serves `POST /v1/api/<operation>` for every operation except those of the server's own command line. The caller sends
 * `Authorization: Bearer` with the token of a session, or the cookie of a session; without either, the caller is
 * anonymous. The body is the operation's input, and the answer is its output.
 */
export function apiRoutes(
  services: Services,
  authenticator: Authenticator,
  operations: ReadonlyMap<string, Operation>,
): Router {
  const serve = async (req: Request, res: Response, operation: Operation): Promise<void> => {
    const caller = await authenticator.authenticate(req);
    // The permission is checked before the body is read: the body of a caller who may not call the operation is not
    // worth reading.
    authorizeCaller(operation, caller);
    const limits = limitsOf(operation);
    const body = await readBody(req, res, bodySizeLimit(services.config.http, limits));
    const createRefusal = (): KlatchError => new KlatchError('rate_limited');
    const input = await services.parseBudget.run(callerSource(caller), createRefusal, () =>
      parseJsonBodyAsInput(req, body, limits),
    );
    const output = await authenticator.throttleFailedGuesses(
      req,
      callOperation(operation, { services, caller, input }),
    );
    sendJson(res, 200, output);
  };
  const handler: RequestHandler = async (req, res) => {
    const name = req.params['operation'] as string;
    const operation = operations.get(name);
    try {
      if (operation === undefined || operation.who === 'system') {
        throw new KlatchError('not_found', { sentence: 'There is no such operation: docs/api.md lists them' });
      }
      if (req.method === 'POST') await serve(req, res, operation);
      else sendMethodNotAllowed(req, res, ['POST']);
    } catch (error) {
      setAuthChallenge(req, res, error);
      sendThrownError(res, error, { log: services.log, operation: operation?.name });
    }
  };
  const router = Router({ caseSensitive: true });
  router.all('/:operation', handler);
  return router;
}
