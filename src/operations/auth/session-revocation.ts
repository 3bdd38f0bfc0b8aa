import type { Bus } from '../../bus/bus.ts';
import type { AccountId } from '../../model/ids.ts';
import { CommitUnknownError } from '../../storage/db/database-error.ts';

/**
 * Runs work that may end sessions; it names the accounts they are of. Where the answer of its commit is lost it may have
 * been done all the same, and a repeat would find nothing to end: everybody looks those accounts' sessions up again.
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
