import type { AccountId } from '../model/ids.ts';

/** The accounts are collected anew when they are older: collecting thousands for each batch of pushes would be dear. */
const CACHE_TTL_MS = 250;

/** Who is in the foreground, for questions one by one. */
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
