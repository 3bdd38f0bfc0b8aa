import { setTimeout as wait } from 'node:timers/promises';
import { KlatchError } from '../../errors.ts';
import { CommitUnknownError, DatabaseUnavailableError } from '../../storage/db/database-error.ts';

const RETRY_MS = 100;

/**
 * Retries work while the database is unavailable, until `deadlineMs` on the monotonic clock. The work must be safe to
 * do twice. Throws `database_unavailable` after the deadline, and all other errors of the work at once.
 */
export async function retryWhileDatabaseIsAway<Result>(
  work: () => Promise<Result>,
  deadlineMs: number,
): Promise<Result> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const isAway = error instanceof DatabaseUnavailableError || error instanceof CommitUnknownError;
      if (!isAway) throw error;
      if (performance.now() + RETRY_MS >= deadlineMs) throw new KlatchError('database_unavailable', { cause: error });
      await wait(RETRY_MS);
    }
  }
}
