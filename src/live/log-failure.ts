import type { Log } from '../log.ts';
import { publicError } from '../operations/core/database-errors.ts';

/** Logs why a call must be retried. Another log entry reports an unreachable database; any other error is a defect. */
export function logFailureByKind(log: Log, event: string, error: unknown): void {
  if (publicError(error).code === 'internal') log.error(event, { error });
  else log.debug(event, { error });
}
