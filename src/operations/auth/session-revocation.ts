import type { Bus } from '../../bus/bus.ts';
import type { AccountId } from '../../model/ids.ts';
import { CommitUnknownError } from '../../storage/db/database-error.ts';

/**
 * Runs work that may end sessions and reports the accounts of these sessions. When the commit's answer is lost, the
 * sessions may have ended, and a retry would find none to end. Every node then looks up the sessions of these accounts
 * again.
 */
export async function withUnknownCommitInvalidation<T>(
  { bus }: { readonly bus: Bus },
  work: (revokesSessionsOf: (accountId: AccountId) => void) => Promise<T>,
): Promise<T> {
  const accounts = new Set<AccountId>();
  try {
    return await work((accountId) => accounts.add(accountId));
  } catch (error) {
    if (error instanceof CommitUnknownError && accounts.size > 0) bus.publish('accountsChanged', [...accounts]);
    throw error;
  }
}
