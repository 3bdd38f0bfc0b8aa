import type { Request, RequestHandler, Response } from 'express';
import { KlatchError } from '../errors.ts';
import type { Services } from '../operations/services.ts';
import type { Integration } from '../storage/integrations.ts';
import { UnknownTokens } from './unknown-tokens.ts';

/** What a valid token in the path gives a handler. */
export interface TokenAccess {
  readonly token: string;
  readonly integration: Integration;
}

export type TokenHandler = (req: Request, res: Response, access: TokenAccess) => Promise<void>;

/** Makes handlers for routes below `/v1/webhooks/:token`: the token is checked before anything of the body is read. */
export function tokenRoutes(services: Services): (handler: TokenHandler) => RequestHandler {
  const unknown = new UnknownTokens(services.config.limits.unknownTokenRate);
  return (handler) => async (req, res) => {
    const token = req.params['token'] as string;
    const integration = services.tokens.remembered(token) ?? (await services.tokens.find(token));
    if (integration === null) {
      await unknown.holdBack(req.socket.remoteAddress ?? '');
      throw new KlatchError('wrong_token');
    }
    await handler(req, res, { token, integration });
  };
}
