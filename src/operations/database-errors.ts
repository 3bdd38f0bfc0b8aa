import { KlatchError } from '../errors.ts';
import { DatabaseAwayError, DatabaseLostError } from '../storage/database-error.ts';
import { IntakeFullError, PoisonousPostError } from '../storage/message-log.ts';

/** The public error for what the storage failed with; anything unexpected becomes `internal` with its cause. */
export function publicError(error: unknown): KlatchError {
  if (error instanceof KlatchError) return error;
  if (error instanceof DatabaseAwayError) return new KlatchError('database_away', { cause: error });
  if (error instanceof DatabaseLostError) return new KlatchError('outcome_unknown', { cause: error });
  if (error instanceof IntakeFullError) return new KlatchError('intake_full', { cause: error });
  if (error instanceof PoisonousPostError) {
    return new KlatchError('invalid_input', { sentence: 'The database cannot store this message', cause: error });
  }
  return new KlatchError('internal', { cause: error });
}
