import { Router, type Request, type RequestHandler, type Response } from 'express';
import { KlatchError } from '../errors.ts';
import { callerSource } from '../operations/core/caller.ts';
import { limitsOf, type BodyLimits } from '../operations/core/input-limits.ts';
import { authorizeCaller, callOperation } from '../operations/core/call-operation.ts';
import type { Operation } from '../operations/core/operation.ts';
import { parseJsonRepairingControls } from '../operations/core/parse-json.ts';
import type { Services } from '../operations/core/services.ts';
import { bodySizeLimit, readBody } from './body.ts';
import { setAuthChallenge, type Authenticator } from './authenticator.ts';
import { decodeUtf8, mediaType } from './json-body.ts';
import { sendJson, jsonResponseHeaders, sendMethodNotAllowed, sendThrownError } from './responses.ts';

/**
 * `POST /v1/api/<operation>`: every operation but those of the server's own command line, with `Authorization: Bearer`
 * and the token of a session, or without one as nobody. The body is the input, the answer the output.
 */
export function apiRoutes(
  services: Services,
  authenticator: Authenticator,
  operations: ReadonlyMap<string, Operation>,
): Router {
  const serve = async (req: Request, res: Response, operation: Operation): Promise<void> => {
    const caller = await authenticator.authenticate(req);
    // Before the body is read: who may not is not worth it.
    authorizeCaller(operation, caller);
    const limits = limitsOf(operation);
    const body = await readBody(req, res, bodySizeLimit(services.config.http, limits));
    const refusal = (): KlatchError => new KlatchError('rate_limited');
    const input = await services.parseBudget.run(callerSource(caller), refusal, () =>
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

/** The value of a body; an empty one asks for nothing in particular. Throws `unsupported_media`, `invalid_input`. */
function parseJsonBodyAsInput(req: Request, body: Buffer, limits: BodyLimits): object {
  if (body.length === 0) return {};
  const type = mediaType(req.headers['content-type']);
  if (type !== '' && type !== 'application/json' && !type.endsWith('+json')) {
    const sentence = `The body is the input as JSON: send it with Content-Type: ${jsonResponseHeaders['content-type']}`;
    throw new KlatchError('unsupported_media', { sentence });
  }
  const { value, problem } = parseJsonRepairingControls(decodeUtf8(body), limits);
  if (problem !== undefined) throw new KlatchError('invalid_input', { sentence: problem });
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new KlatchError('invalid_input', { sentence: 'The body must be a JSON object: the input of the operation' });
  }
  return value;
}
