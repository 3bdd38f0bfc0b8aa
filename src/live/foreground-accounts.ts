import type { AccountId } from '../model/ids.ts';

/** Whose sessions on this node somebody looks at, as far as their clients say. */
export class ForegroundAccounts {
  /** How many of an account's. */
  readonly #sessions = new Map<AccountId, number>();

  get accounts(): Iterable<AccountId> {
    return this.#sessions.keys();
  }

  has(accountId: AccountId): boolean {
    return this.#sessions.has(accountId);
  }

  /** One more; true: the account's first. */
  add(accountId: AccountId): boolean {
    const before = this.#sessions.get(accountId) ?? 0;
    this.#sessions.set(accountId, before + 1);
    return before === 0;
  }

  /** One less; true: the account's last. */
  remove(accountId: AccountId): boolean {
    const remaining = (this.#sessions.get(accountId) ?? 0) - 1;
    if (remaining > 0) this.#sessions.set(accountId, remaining);
    else this.#sessions.delete(accountId);
    return remaining === 0;
  }
}
