import { request, type Dispatcher } from 'undici';
import type { ServiceAccount } from '../../config/keys/push-keys.ts';
import { readResponse } from './response.ts';
import { signJwt } from './jwt.ts';
import { failedOutcome, type FailedOutcome } from '../outcomes.ts';

const SCOPE = 'https://www.googleapis.com/auth/firebase.messaging';
const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
/** The requested lifetime of an access token: the longest that Google grants. */
const REQUESTED_LIFETIME_S = 3600;
/** A token is renewed this long before it expires, but not before half of its lifetime is over. */
const MAX_RENEWAL_MARGIN_MS = 5 * 60_000;
/** The pause after a failed renewal, while the present token is still valid. */
const EARLY_RENEWAL_RETRY_MS = 10_000;
const MAX_TOKEN_LIFETIME_S = 24 * 3600;
/** The format of an access token. Others are refused, since the token goes into an HTTP header unchanged. */
const ACCESS_TOKEN_PATTERN = /^[\x21-\x7e]{1,8192}$/;

interface CachedToken {
  readonly token: string;
  readonly renewAtMs: number;
  readonly expiresAtMs: number;
}

/** Where and how to request access tokens. */
interface GoogleTokenRequestOptions {
  readonly endpoint: string;
  readonly dispatcher: Dispatcher;
  readonly userAgent: string;
  readonly timeoutMs: number;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
}

/** Requests the access tokens of a service account, one request at a time, and renews a token before it expires. */
export class GoogleAccessTokens {
  readonly #serviceAccount: ServiceAccount;
  readonly #options: GoogleTokenRequestOptions;
  #cached: CachedToken | null = null;
  /** After a failed renewal, a valid token is not renewed before this time. */
  #noEarlyRenewalBeforeMs = -Infinity;
  #renewal: Promise<CachedToken | FailedOutcome> | null = null;

  constructor(account: ServiceAccount, options: GoogleTokenRequestOptions) {
    this.#serviceAccount = account;
    this.#options = options;
  }

  /** Resolves to a valid access token, or to the reason why there is none. Never rejects. */
  async getToken(): Promise<string | FailedOutcome> {
    const cached = this.#cached;
    const now = this.#options.now();
    if (cached !== null && now < cached.renewAtMs) return cached.token;
    // The present token is still valid, and is used while the next one is requested.
    if (cached !== null && now < cached.expiresAtMs) {
      if (now >= this.#noEarlyRenewalBeforeMs) void this.#renew();
      return cached.token;
    }
    const renewed = await this.#renew();
    return 'token' in renewed ? renewed.token : renewed;
  }

  /** Drops this token, since Google refused it. A newer token stays in use. */
  invalidate(token: string): void {
    if (this.#cached?.token === token) this.#cached = null;
  }

  #renew(): Promise<CachedToken | FailedOutcome> {
    this.#renewal ??= this.#requestToken().then((renewed) => {
      this.#renewal = null;
      if ('token' in renewed) this.#cached = renewed;
      else this.#noEarlyRenewalBeforeMs = this.#options.now() + EARLY_RENEWAL_RETRY_MS;
      return renewed;
    });
    return this.#renewal;
  }

  async #requestToken(): Promise<CachedToken | FailedOutcome> {
    const { endpoint, dispatcher, userAgent, timeoutMs, now } = this.#options;
    const startedAtMs = now();
    const response = await readResponse(
      (signal) =>
        request(endpoint, {
          method: 'POST',
          headers: { 'content-type': 'application/x-www-form-urlencoded', 'user-agent': userAgent },
          body: new URLSearchParams({ grant_type: GRANT_TYPE, assertion: this.#assertion() }).toString(),
          signal,
          dispatcher,
        }),
      AbortSignal.timeout(timeoutMs),
    );
    if ('outcome' in response) return response;
    const { status, json, retryAfterMs } = response;
    // Google answers 400 for a revoked key, and for a removed service account.
    if (status >= 400 && status < 500 && status !== 408 && status !== 429)
      return failedOutcome('key', { code: status });
    const { access_token: token, expires_in: seconds } = json ?? {};
    if (status !== 200) return failedOutcome('status', { code: status, retryAfterMs, vendorWide: true });
    const isToken =
      typeof token === 'string' && ACCESS_TOKEN_PATTERN.test(token) && typeof seconds === 'number' && seconds > 0;
    if (!isToken) return failedOutcome('answer', { code: status, vendorWide: true });
    const lifetimeMs = Math.min(seconds, MAX_TOKEN_LIFETIME_S) * 1000;
    const renewAtMs = startedAtMs + Math.max(lifetimeMs - MAX_RENEWAL_MARGIN_MS, lifetimeMs / 2);
    return { token, renewAtMs, expiresAtMs: startedAtMs + lifetimeMs };
  }

  #assertion(): string {
    const { clientEmail, keyId, privateKey } = this.#serviceAccount;
    const nowS = Math.floor(Date.now() / 1000);
    const claims = {
      iss: clientEmail,
      scope: SCOPE,
      aud: this.#options.endpoint,
      iat: nowS,
      exp: nowS + REQUESTED_LIFETIME_S,
    };
    return signJwt({ kid: keyId }, claims, privateKey);
  }
}
