import type { AccountId } from '../model/ids.ts';

/** Accounts with a foreground session on this node, as their clients report. */
export class ForegroundAccounts {
  /** The number of foreground sessions of each account. */
  readonly #foregroundSessionCounts = new Map<AccountId, number>();

  /** Adds a foreground session. True: it is the account's first one on this node. */
  addSession(accountId: AccountId): boolean {
    const countBefore = this.#foregroundSessionCounts.get(accountId) ?? 0;
    this.#foregroundSessionCounts.set(accountId, countBefore + 1);
    return countBefore === 0;
  }

  /** Removes a foreground session. True: it was the account's last one on this node. */
  removeSession(accountId: AccountId): boolean {
    const remaining = (this.#foregroundSessionCounts.get(accountId) ?? 0) - 1;
    if (remaining > 0) this.#foregroundSessionCounts.set(accountId, remaining);
    else this.#foregroundSessionCounts.delete(accountId);
    return remaining === 0;
  }
}
