import type { Request, Response } from 'express';
import { KlatchError, type ErrorCode } from '../errors.ts';
import type { SourceKey } from '../model/source-key.ts';
import type { TrustedProxies } from '../model/trusted-proxies.ts';
import type { AccountCaller, AnonymousCaller, Caller } from '../operations/core/caller.ts';
import { RateLimiter } from '../operations/core/rate-limiter.ts';
import type { Services } from '../operations/core/services.ts';
import { klatchCookiesIn } from '../operations/core/session-cookie.ts';
import { AuthThrottle } from './auth-throttle.ts';
import { requireOwnPage } from './browser/own-page.ts';

/** The most sources (client networks) whose rate of anonymous requests is tracked at the same time. */
const MAX_TRACKED_SOURCES = 10_000;
const BEARER_PATTERN = /^bearer +([^\s,]{1,200}) *$/i;
const TOKEN_ERRORS: ReadonlySet<ErrorCode> = new Set(['unauthenticated']);
/**
 * Errors that answer a wrong guess at a code, a link or an invitation. A source that gets many of them gets each after
 * a delay.
 */
const GUESS_ERRORS: ReadonlySet<ErrorCode> = new Set(['invalid_code', 'activation_expired', 'invalid_invite']);

/** Authenticates requests by the token or the cookie of a session, or as anonymous, and limits their rate. */
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
      maxKeys: MAX_TRACKED_SOURCES,
    });
  }

  /**
   * Finds the caller of a request by a session's token in Authorization, or by the session cookie from a page of this
   * server's own origin. A request with the cookie of an ended session is anonymous, since a page cannot omit the
   * cookie. Throws:
   * - `unauthenticated`, after a delay for a source that tries many tokens
   * - `forbidden` for a cookie that a page of another origin sent
   * - `invalid_input` for a cookie beside Authorization
   * - `rate_limited`
   */
  async authenticate(req: Request): Promise<Caller> {
    const { authorization, cookie } = req.headers;
    const cookieToken = await this.#services.sessionCookie.tokenAmong(klatchCookiesIn(cookie));
    if (cookieToken !== null) return this.#authenticateByCookie(req, cookieToken);
    const anonymous = this.#asAnonymousCaller(req);
    if (authorization === undefined) return this.#limitAnonymous(anonymous);
    const token = BEARER_PATTERN.exec(authorization)?.[1] ?? '';
    return this.#limitSession(await this.#findSession(anonymous, token));
  }

  async #authenticateByCookie(req: Request, token: string): Promise<Caller> {
    requireOwnPage(req, this.#services.sessionCookie.origin);
    if (req.headers.authorization !== undefined) {
      throw new KlatchError('invalid_input', {
        sentence: 'Send the session cookie or Authorization, not both: they may be of two people',
      });
    }
    const anonymous = this.#asAnonymousCaller(req);
    try {
      return this.#limitSession(await this.#findSession(anonymous, token));
    } catch (error) {
      if (error instanceof KlatchError && error.code === 'unauthenticated') return this.#limitAnonymous(anonymous);
      throw error;
    }
  }

  async #findSession(anonymous: AnonymousCaller, token: string): Promise<AccountCaller> {
    const { source, live } = anonymous;
    return this.#delayRejections(
      anonymous,
      this.#services.sessions.authenticate(token, { source, live }),
      TOKEN_ERRORS,
    );
  }

  #limitSession(caller: AccountCaller): AccountCaller {
    const isWithinRate = this.#services.sessionRequestLimiter.reserve(caller.sessionId, 0) !== null;
    if (!isWithinRate) throw new KlatchError('rate_limited');
    return caller;
  }

  #limitAnonymous(anonymous: AnonymousCaller): AnonymousCaller {
    if (this.#anonymousRate.reserve(anonymous.source, 0) === null) throw new KlatchError('rate_limited');
    return anonymous;
  }

  /** Settles as `work` does. For a source with too many wrong codes or links, the rejection comes late. */
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

/** Sets the header WWW-Authenticate of a 401 (RFC 6750). Does nothing for other errors. */
export function setAuthChallenge(req: Request, res: Response, error: unknown): void {
  if (res.headersSent || !(error instanceof KlatchError) || error.code !== 'unauthenticated') return;
  const detail = req.headers.authorization === undefined ? '' : ', error="invalid_token"';
  res.setHeader('www-authenticate', `Bearer realm="klatch"${detail}`);
}
