import type { AccountId } from '../model/ids.ts';

/** Whose sessions on this node somebody looks at, as far as their clients say. */
export class ForegroundAccounts {
  /** How many of an account's. */
  readonly #foregroundSessionCounts = new Map<AccountId, number>();

  /** One more; true: the account's first. */
  addSession(accountId: AccountId): boolean {
    const before = this.#foregroundSessionCounts.get(accountId) ?? 0;
    this.#foregroundSessionCounts.set(accountId, before + 1);
    return before === 0;
  }

  /** One less; true: the account's last. */
  removeSession(accountId: AccountId): boolean {
    const remaining = (this.#foregroundSessionCounts.get(accountId) ?? 0) - 1;
    if (remaining > 0) this.#foregroundSessionCounts.set(accountId, remaining);
    else this.#foregroundSessionCounts.delete(accountId);
    return remaining === 0;
  }
}
