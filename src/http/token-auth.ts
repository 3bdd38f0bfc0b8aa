import type { Request, RequestHandler, Response } from 'express';
import { KlatchError } from '../errors.ts';
import type { TrustedProxies } from '../model/trusted-proxies.ts';
import type { IntegrationWithOpenedSecret } from '../operations/core/access.ts';
import type { Services } from '../operations/core/services.ts';
import { AuthThrottle } from './auth-throttle.ts';

/** A valid token with its integration, for a handler. */
export interface TokenGrant {
  readonly token: string;
  readonly integration: IntegrationWithOpenedSecret;
}

export type TokenHandler = (req: Request, res: Response, grant: TokenGrant) => Promise<void>;

/** Finds the token in a request; empty if there is none. */
type TokenFinder = (req: Request) => string;

/** Makes a request handler that calls `handler` only with a valid token, before the body is read. */
export type WithToken = (handler: TokenHandler) => RequestHandler;

/** Finds the group of a request's integration token. The token is in the path, unless the route names another place. */
export class TokenAuth {
  readonly #services: Services;
  readonly #proxies: TrustedProxies;
  readonly #authThrottle: AuthThrottle;

  constructor(services: Services, proxies: TrustedProxies) {
    this.#services = services;
    this.#proxies = proxies;
    this.#authThrottle = new AuthThrottle(services.config.limits.unknownTokensPerSecondPerSource);
  }

  /** For posts: accepts a cached token, since the message log checks the token again when it writes the post. */
  withPossiblyCachedToken(tokenOf: TokenFinder = tokenInPath): WithToken {
    const { tokens } = this.#services;
    return this.#authorizeBy((token) => tokens.findCached(token) ?? tokens.find(token), tokenOf);
  }

  /**
   * For requests whose token is not checked a second time. It asks the database each time, so that a rotation on
   * another node takes effect at once.
   */
  withVerifiedToken(): WithToken {
    return this.#authorizeBy((token) => this.#services.tokens.findBypassingCache(token));
  }

  /**
   * The request's integration as the database knows it; null for an unknown token, after a delay for a source that
   * tries many tokens.
   */
  async verify(req: Request): Promise<IntegrationWithOpenedSecret | null> {
    const integration = await this.#services.tokens.findBypassingCache(tokenInPath(req));
    if (integration === null) await this.#authThrottle.delayRejection(this.#proxies.sourceKeyOf(req));
    return integration;
  }

  #authorizeBy(
    find: (token: string) => IntegrationWithOpenedSecret | Promise<IntegrationWithOpenedSecret | null>,
    tokenOf: TokenFinder = tokenInPath,
  ): WithToken {
    return (handler) => async (req, res) => {
      const token = tokenOf(req);
      const integrationOrPromise = find(token);
      // For a cached token `integrationOrPromise` is no promise, so it costs no turn of the event loop.
      const integration = integrationOrPromise instanceof Promise ? await integrationOrPromise : integrationOrPromise;
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
