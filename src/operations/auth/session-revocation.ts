import type { Bus } from '../../bus/bus.ts';
import type { AccountId } from '../../model/ids.ts';
import { CommitUnknownError } from '../../storage/db/database-error.ts';

/**
 * Runs `work`, which reports the accounts whose sessions it may end. If the answer to its commit is lost, the sessions
 * may have ended: then all nodes look up the sessions of these accounts again.
 */
export async function withUnknownCommitInvalidation<T>(
  { bus }: { readonly bus: Bus },
  work: (noteSessionsMayEnd: (accountId: AccountId) => void) => Promise<T>,
): Promise<T> {
  const accountsToInvalidate = new Set<AccountId>();
  try {
    return await work((accountId) => accountsToInvalidate.add(accountId));
  } catch (error) {
    if (error instanceof CommitUnknownError && accountsToInvalidate.size > 0)
      bus.publish('accountsChanged', [...accountsToInvalidate]);
    throw error;
  }
}
