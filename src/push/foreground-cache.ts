import type { AccountId } from '../model/ids.ts';

/**
 * The set of accounts in the foreground is collected again after this time. To collect thousands of them for each batch
 * of pushes would be expensive.
 */
const CACHE_TTL_MS = 250;

/** Caches the set of accounts whose app is in the foreground, so that single accounts can be looked up. */
export class ForegroundCache {
  readonly #collect: () => Iterable<AccountId>;
  #accounts: ReadonlySet<AccountId> = new Set();
  #collectedAtMs = -Infinity;

  constructor(collect: () => Iterable<AccountId>) {
    this.#collect = collect;
  }

  has(account: AccountId): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#collectedAtMs >= CACHE_TTL_MS) {
      this.#accounts = new Set(this.#collect());
      this.#collectedAtMs = nowMs;
    }
    return this.#accounts.has(account);
  }
}
