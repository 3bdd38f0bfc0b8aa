import type { Request, RequestHandler, Response } from 'express';
import { KlatchError } from '../errors.ts';
import type { TrustedProxies } from '../model/trusted-proxies.ts';
import type { KnownIntegration } from '../operations/core/access.ts';
import type { Services } from '../operations/core/services.ts';
import { AuthThrottle } from './auth-throttle.ts';

/** What a valid token in the path gives a handler. */
export interface TokenGrant {
  readonly token: string;
  readonly integration: KnownIntegration;
}

export type TokenHandler = (req: Request, res: Response, grant: TokenGrant) => Promise<void>;

/** Where in a request the token stands; empty: nowhere. */
type TokenFinder = (req: Request) => string;

/** Makes a handler that is only called with a valid token; what the body holds has not been read then. */
export type WithToken = (handler: TokenHandler) => RequestHandler;

/** The way from the token in the path to its group, for all routes below `/v1/webhooks/:token`. */
export class TokenAuth {
  readonly #services: Services;
  readonly #proxies: TrustedProxies;
  readonly #authThrottle: AuthThrottle;

  constructor(services: Services, proxies: TrustedProxies) {
    this.#services = services;
    this.#proxies = proxies;
    this.#authThrottle = new AuthThrottle(services.config.limits.unknownTokensPerSecondPerSource);
  }

  /** For posts, which the log admits once more as it writes: a token that is remembered is let through. */
  withPossiblyCachedToken(tokenOf: TokenFinder = tokenInPath): WithToken {
    const { tokens } = this.#services;
    return this.#authorizeBy((token) => tokens.cached(token) ?? tokens.find(token), tokenOf);
  }

  /** For what has no second check: the database is asked each time, so that a rotation on another node holds at once. */
  withVerifiedToken(): WithToken {
    return this.#authorizeBy((token) => this.#services.tokens.findBypassingCache(token));
  }

  /** The request's integration as the database knows it; null for an unknown token, after holding back who tries many. */
  async verify(req: Request): Promise<KnownIntegration | null> {
    const integration = await this.#services.tokens.findBypassingCache(tokenInPath(req));
    if (integration === null) await this.#authThrottle.delayRejection(this.#proxies.sourceKeyOf(req));
    return integration;
  }

  #authorizeBy(
    find: (token: string) => KnownIntegration | Promise<KnownIntegration | null>,
    tokenOf: TokenFinder = tokenInPath,
  ): WithToken {
    return (handler) => async (req, res) => {
      const token = tokenOf(req);
      const found = find(token);
      // A remembered token costs no turn of the event loop.
      const integration = found instanceof Promise ? await found : found;
      if (integration === null) {
        await this.#authThrottle.delayRejection(this.#proxies.sourceKeyOf(req));
        throw new KlatchError('invalid_token');
      }
      await handler(req, res, { token, integration });
    };
  }
}

function tokenInPath(req: Request): string {
  return req.params['token'] as string;
}
