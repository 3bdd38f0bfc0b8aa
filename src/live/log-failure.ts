import type { Log } from '../log.ts';
import { publicError } from '../operations/core/database-errors.ts';

/**
 * Logs an error after which a call is retried: as an error only if it is a defect, since the log reports an unreachable
 * database elsewhere.
 */
export function logFailureByKind(log: Log, event: string, error: unknown): void {
  if (publicError(error).code === 'internal') log.error(event, { error });
  else log.debug(event, { error });
}
