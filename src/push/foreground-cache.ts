import type { AccountId } from '../model/ids.ts';

/** Accounts are collected again after this time: collecting thousands for each batch of pushes would be expensive. */
const CACHE_TTL_MS = 250;

/** The accounts in the foreground, for look-ups one by one. */
export class ForegroundCache {
  readonly #collect: () => Iterable<AccountId>;
  #accounts: ReadonlySet<AccountId> = new Set();
  #collectedMs = -Infinity;

  constructor(collect: () => Iterable<AccountId>) {
    this.#collect = collect;
  }

  has(account: AccountId): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#collectedMs >= CACHE_TTL_MS) {
      this.#accounts = new Set(this.#collect());
      this.#collectedMs = nowMs;
    }
    return this.#accounts.has(account);
  }
}
