import type { Request, Response } from 'express';
import { KlatchError, type ErrorCode } from '../errors.ts';
import type { SourceKey } from '../model/source-key.ts';
import type { TrustedProxies } from '../model/trusted-proxies.ts';
import type { Caller, AnonymousCaller } from '../operations/core/caller.ts';
import { RateLimiter } from '../operations/core/rate-limiter.ts';
import type { Services } from '../operations/core/services.ts';
import { AuthThrottle } from './auth-throttle.ts';

/** Sources whose callers without a session are counted. */
const MAX_SOURCES = 10_000;
const BEARER_PATTERN = /^bearer +([^\s,]{1,200}) *$/i;
const TOKEN_ERRORS: ReadonlySet<ErrorCode> = new Set(['unauthenticated']);
/** What those are told who guess at tokens, codes and links; each such answer is slowed down. */
const GUESS_ERRORS: ReadonlySet<ErrorCode> = new Set(['invalid_code', 'activation_expired', 'invalid_invite']);

/** Who comes in with the token of a session, or as nobody, and how often. */
export class Authenticator {
  readonly #services: Services;
  readonly #proxies: TrustedProxies;
  readonly #authThrottle: AuthThrottle;
  readonly #anonymousRate: RateLimiter<SourceKey>;

  constructor(services: Services, proxies: TrustedProxies) {
    const { unknownTokensPerSecondPerSource, sessionRequestRate, sessionRequestBurst } = services.config.limits;
    this.#services = services;
    this.#proxies = proxies;
    this.#authThrottle = new AuthThrottle(unknownTokensPerSecondPerSource);
    this.#anonymousRate = new RateLimiter({
      perSecond: sessionRequestRate,
      burst: sessionRequestBurst,
      keys: MAX_SOURCES,
    });
  }

  /** Who calls. Throws `unauthenticated`, after holding back who tries many tokens, and `rate_limited`. */
  async authenticate(req: Request): Promise<Caller> {
    const anonymous = this.#asAnonymousCaller(req);
    const { authorization } = req.headers;
    const { sessions, sessionRequestLimiter: sessionRequestRate } = this.#services;
    if (authorization === undefined) {
      if (this.#anonymousRate.reserve(anonymous.source, 0) === null) throw new KlatchError('rate_limited');
      return anonymous;
    }
    const token = BEARER_PATTERN.exec(authorization)?.[1] ?? '';
    const { source, live } = anonymous;
    const caller = await this.#delayRejections(anonymous, sessions.authenticate(token, { source, live }), TOKEN_ERRORS);
    if (sessionRequestRate.reserve(caller.sessionId, 0) === null) throw new KlatchError('rate_limited');
    return caller;
  }

  /** The same work, whose refusals come late to a source that has too many of them. */
  async throttleFailedGuesses<T>(req: Request, work: Promise<T>): Promise<T> {
    return this.#delayRejections(this.#asAnonymousCaller(req), work, GUESS_ERRORS);
  }

  async #delayRejections<T>(anonymous: AnonymousCaller, work: Promise<T>, codes: ReadonlySet<ErrorCode>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (error instanceof KlatchError && codes.has(error.code))
        await this.#authThrottle.delayRejection(anonymous.source);
      throw error;
    }
  }

  #asAnonymousCaller(req: Request): AnonymousCaller {
    return { kind: 'anonymous', source: this.#proxies.sourceKeyOf(req), live: null };
  }
}

/** RFC 6750: what a 401 has to say; other errors have nothing to say here. */
export function setAuthChallenge(req: Request, res: Response, error: unknown): void {
  if (res.headersSent || !(error instanceof KlatchError) || error.code !== 'unauthenticated') return;
  const detail = req.headers.authorization === undefined ? '' : ', error="invalid_token"';
  res.setHeader('www-authenticate', `Bearer realm="klatch"${detail}`);
}
