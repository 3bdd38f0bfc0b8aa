import type { KeyObject } from 'node:crypto';
import { signJwt } from './jwt.ts';

/** Apple accepts a token for an hour. */
const RENEW_AFTER_MS = 40 * 60_000;
/** Apple refuses all pushes with a key whose tokens change more often than this. */
const MIN_RENEWAL_INTERVAL_MS = 20 * 60_000;

/** Provider tokens of a key. */
export class AppleProviderTokens {
  readonly #privateKey: KeyObject;
  readonly #keyIds: { readonly keyId: string; readonly teamId: string };
  readonly #now: () => number;
  #token: string | null = null;
  #signedAtMs = 0;

  /** `now`: monotonic milliseconds. */
  constructor(key: KeyObject, keyIds: { keyId: string; teamId: string }, now: () => number) {
    this.#privateKey = key;
    this.#keyIds = keyIds;
    this.#now = now;
  }

  get(): string {
    const ageMs = this.#now() - this.#signedAtMs;
    if (this.#token === null || ageMs >= RENEW_AFTER_MS) this.#renew();
    return this.#token!;
  }

  /**
   * Apple reported this token as expired. Returns the milliseconds until the next one may be created; 0: it was
   * created.
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
