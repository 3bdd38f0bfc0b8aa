import type { KeyObject } from 'node:crypto';
import { signJwt } from './jwt.ts';

/** A new token is signed after this time. Apple accepts a token for an hour. */
const RENEW_AFTER_MS = 40 * 60_000;
/** The shortest time between two tokens. Apple refuses all pushes with a key whose tokens change more often. */
const MIN_RENEWAL_INTERVAL_MS = 20 * 60_000;

/** Signs the provider tokens (JWTs) of one .p8 key, and reuses each for a while. */
export class AppleProviderTokens {
  readonly #privateKey: KeyObject;
  readonly #keyIds: { readonly keyId: string; readonly teamId: string };
  readonly #now: () => number;
  #token: string | null = null;
  #signedAtMs = 0;

  /** `now`: a monotonic clock in milliseconds. */
  constructor(key: KeyObject, keyIds: { keyId: string; teamId: string }, now: () => number) {
    this.#privateKey = key;
    this.#keyIds = keyIds;
    this.#now = now;
  }

  getToken(): string {
    const ageMs = this.#now() - this.#signedAtMs;
    if (this.#token === null || ageMs >= RENEW_AFTER_MS) this.#renew();
    return this.#token!;
  }

  /**
   * Replaces a token that Apple reported as expired. Returns 0 if a newer token exists now, else the milliseconds until
   * one may be created.
   */
  renewExpiredOrWaitMs(token: string): number {
    if (token !== this.#token) return 0;
    const waitMs = this.#signedAtMs + MIN_RENEWAL_INTERVAL_MS - this.#now();
    if (waitMs > 0) return waitMs;
    this.#renew();
    return 0;
  }

  #renew(): void {
    const claims = { iss: this.#keyIds.teamId, iat: Math.floor(Date.now() / 1000) };
    this.#token = signJwt({ kid: this.#keyIds.keyId }, claims, this.#privateKey);
    this.#signedAtMs = this.#now();
  }
}
