import { request, type Dispatcher } from 'undici';
import type { ServiceAccount } from '../../config/push-keys.ts';
import { readResponse } from './response.ts';
import { signJwt } from './jwt.ts';
import { failed, type Failed } from '../outcomes.ts';

const SCOPE = 'https://www.googleapis.com/auth/firebase.messaging';
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
/** What is asked for; Google gives no more. */
const LIFETIME_S = 3600;
/** A token is renewed so long before its end, or after half of its life where that is longer. */
const MARGIN_MS = 5 * 60_000;
/** After a renewal that failed, as long as the last token serves. */
const RENEWAL_RETRY_MS = 10_000;
const MAX_LIFETIME_S = 24 * 3600;
/** A token goes into a header as it is. */
const TOKEN = /^[\x21-\x7e]{1,8192}$/;

interface CachedToken {
  readonly token: string;
  readonly renewAtMs: number;
  readonly endsAtMs: number;
}

/** Where and how tokens are got. */
interface TokenOptions {
  readonly endpoint: string;
  readonly dispatcher: Dispatcher;
  readonly userAgent: string;
  readonly timeoutMs: number;
  /** Milliseconds that only go forward. */
  readonly now: () => number;
}

/** Access tokens of a service account: one at a time is asked for, and before the last one ends. */
export class GoogleTokens {
  readonly #account: ServiceAccount;
  readonly #options: TokenOptions;
  #cached: CachedToken | null = null;
  /** Before this, a token that still is good is not renewed. */
  #retryAtMs = -Infinity;
  #renewal: Promise<CachedToken | Failed> | null = null;

  constructor(account: ServiceAccount, options: TokenOptions) {
    this.#account = account;
    this.#options = options;
  }

  /** A token that is good for a while, or why there is none. Never rejects. */
  async get(): Promise<string | Failed> {
    const cached = this.#cached;
    const now = this.#options.now();
    if (cached !== null && now < cached.renewAtMs) return cached.token;
    // One that still is good serves while the next one is on its way.
    if (cached !== null && now < cached.endsAtMs) {
      if (now >= this.#retryAtMs) void this.#renew();
      return cached.token;
    }
    const renewed = await this.#renew();
    return 'token' in renewed ? renewed.token : renewed;
  }

  /** This token was refused: it is not used again. One that has come since is kept. */
  forget(token: string): void {
    if (this.#cached?.token === token) this.#cached = null;
  }

  #renew(): Promise<CachedToken | Failed> {
    this.#renewal ??= this.#requestToken().then((renewed) => {
      this.#renewal = null;
      if ('token' in renewed) this.#cached = renewed;
      else this.#retryAtMs = this.#options.now() + RENEWAL_RETRY_MS;
      return renewed;
    });
    return this.#renewal;
  }

  async #requestToken(): Promise<CachedToken | Failed> {
    const { endpoint, dispatcher, userAgent, timeoutMs, now } = this.#options;
    const startedMs = now();
    const response = await readResponse(
      (signal) =>
        request(endpoint, {
          method: 'POST',
          headers: { 'content-type': 'application/x-www-form-urlencoded', 'user-agent': userAgent },
          body: new URLSearchParams({ grant_type: GRANT, assertion: this.#assertion() }).toString(),
          signal,
          dispatcher,
        }),
      AbortSignal.timeout(timeoutMs),
    );
    if ('outcome' in response) return response;
    const { status, json, retryAfterMs } = response;
    // 400 is what a key that was revoked, and an account that was removed, are answered with.
    if (status >= 400 && status < 500 && status !== 408 && status !== 429) return failed('key', { code: status });
    const { access_token: token, expires_in: seconds } = json ?? {};
    if (status !== 200) return failed('status', { code: status, retryAfterMs, vendorWide: true });
    const isToken = typeof token === 'string' && TOKEN.test(token) && typeof seconds === 'number' && seconds > 0;
    if (!isToken) return failed('answer', { code: status, vendorWide: true });
    const lifetimeMs = Math.min(seconds, MAX_LIFETIME_S) * 1000;
    const renewAtMs = startedMs + Math.max(lifetimeMs - MARGIN_MS, lifetimeMs / 2);
    return { token, renewAtMs, endsAtMs: startedMs + lifetimeMs };
  }

  #assertion(): string {
    const { clientEmail, keyId, privateKey } = this.#account;
    const nowS = Math.floor(Date.now() / 1000);
    const claims = { iss: clientEmail, scope: SCOPE, aud: this.#options.endpoint, iat: nowS, exp: nowS + LIFETIME_S };
    return signJwt({ kid: keyId }, claims, privateKey);
  }
}
