import { KlatchError } from '../../errors.ts';
import { NotInStoreError, StoreUnavailableError, StoreFullError } from '../../files/store.ts';
import { DatabaseUnavailableError, CommitUnknownError, sqlState } from '../../storage/db/database-error.ts';
import { IntakeFullError, PoisonMessageError } from '../../storage/messages/message-log.ts';

/**
 * The codes of errors with which PostgreSQL rolls back for a temporary reason:
 * - 25006: the database is read-only
 * - 40: serialization failures and deadlocks
 * - 53: insufficient resources, such as a full disk
 * - 55P03: a lock is not available
 * - 57: the statement was cancelled, or the server shuts down
 * - 58: an error of the system under PostgreSQL
 */
const TRANSIENT_SQLSTATE = /^(?:25006|40|53|55P03|57|58)/;

/**
 * The public error for an error of the database or of the file store. Any unexpected error becomes `internal`, with the
 * error as its cause.
 */
export function publicError(error: unknown): KlatchError {
  if (error instanceof KlatchError) return error;
  if (error instanceof DatabaseUnavailableError) return new KlatchError('database_unavailable', { cause: error });
  if (error instanceof CommitUnknownError) return new KlatchError('outcome_unknown', { cause: error });
  if (error instanceof IntakeFullError) return new KlatchError('overloaded', { cause: error });
  if (error instanceof PoisonMessageError) {
    return new KlatchError('invalid_input', { sentence: 'The database cannot store this message', cause: error });
  }
  if (error instanceof StoreUnavailableError) return new KlatchError('storage_unavailable', { cause: error });
  if (error instanceof StoreFullError) return new KlatchError('storage_full', { cause: error });
  if (error instanceof NotInStoreError) return new KlatchError('file_not_found', { cause: error });
  const sqlstateCode = sqlState(error);
  if (sqlstateCode !== null && TRANSIENT_SQLSTATE.test(sqlstateCode))
    return new KlatchError('database_unavailable', { cause: error });
  return new KlatchError('internal', { cause: error });
}

/** Turns a lost answer of the database into `outcome_unknown` with a sentence, and leaves other errors alone. */
export function translateCommitUnknown(error: unknown, sentence: string): unknown {
  return error instanceof CommitUnknownError ? new KlatchError('outcome_unknown', { sentence, cause: error }) : error;
}

/** Awaits work that only reads, and turns a lost answer into an error which says that nothing was changed. */
export async function translateLostRead<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof CommitUnknownError) throw new KlatchError('database_unavailable', { cause: error });
    throw error;
  }
}
