import type { Request, Response } from 'express';
import { KlatchError, type ErrorCode } from '../errors.ts';
import type { SourceKey } from '../model/source-key.ts';
import type { TrustedProxies } from '../model/trusted-proxies.ts';
import type { Caller, NobodyCaller } from '../operations/caller.ts';
import { Rate } from '../operations/rate.ts';
import type { Services } from '../operations/services.ts';
import { UnknownTokens } from './unknown-tokens.ts';

/** Sources whose callers without a session are counted. */
const SOURCES = 10_000;
const BEARER = /^bearer +([^\s,]{1,200}) *$/i;
const WRONG_TOKEN: ReadonlySet<ErrorCode> = new Set(['unauthenticated']);
/** What those are told who guess at tokens, codes and links; each such answer is slowed down. */
const GUESSES: ReadonlySet<ErrorCode> = new Set(['code_wrong', 'activation_over', 'invite_invalid']);

/** Who comes in with the token of a session, or as nobody, and how often. */
export class Door {
  readonly #services: Services;
  readonly #proxies: TrustedProxies;
  readonly #unknown: UnknownTokens;
  readonly #nobodies: Rate<SourceKey>;

  constructor(services: Services, proxies: TrustedProxies) {
    const { unknownTokenRate, sessionRate, sessionBurst } = services.config.limits;
    this.#services = services;
    this.#proxies = proxies;
    this.#unknown = new UnknownTokens(unknownTokenRate);
    this.#nobodies = new Rate({ perSecond: sessionRate, burst: sessionBurst, keys: SOURCES });
  }

  /** Who calls. Throws `unauthenticated`, after holding back who tries many tokens, and `too_often`. */
  async admit(req: Request): Promise<Caller> {
    const nobody = this.#nobodyOf(req);
    const { authorization } = req.headers;
    const { sessions, sessionRate } = this.#services;
    if (authorization === undefined) {
      if (this.#nobodies.reserve(nobody.source, 0) === null) throw new KlatchError('too_often');
      return nobody;
    }
    const token = BEARER.exec(authorization)?.[1] ?? '';
    const { source, live } = nobody;
    const caller = await this.#holdingBack(nobody, sessions.authenticate(token, { source, live }), WRONG_TOKEN);
    if (sessionRate.reserve(caller.sessionId, 0) === null) throw new KlatchError('too_often');
    return caller;
  }

  /** The same work, whose refusals come late to a source that has too many of them. */
  async slowingGuesses<T>(req: Request, work: Promise<T>): Promise<T> {
    return this.#holdingBack(this.#nobodyOf(req), work, GUESSES);
  }

  async #holdingBack<T>(from: NobodyCaller, work: Promise<T>, codes: ReadonlySet<ErrorCode>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (error instanceof KlatchError && codes.has(error.code)) await this.#unknown.holdBack(from.source);
      throw error;
    }
  }

  #nobodyOf(req: Request): NobodyCaller {
    return { kind: 'nobody', source: this.#proxies.sourceOf(req), live: null };
  }
}

/** RFC 6750: what a 401 has to say; other errors have nothing to say here. */
export function challenge(req: Request, res: Response, error: unknown): void {
  if (res.headersSent || !(error instanceof KlatchError) || error.code !== 'unauthenticated') return;
  const fault = req.headers.authorization === undefined ? '' : ', error="invalid_token"';
  res.setHeader('www-authenticate', `Bearer realm="klatch"${fault}`);
}
