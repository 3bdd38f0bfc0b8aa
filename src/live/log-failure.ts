import type { Log } from '../log.ts';
import { publicError } from '../operations/core/database-errors.ts';

/** Logs why something has to be tried again: a database that is away is told elsewhere, anything else is a defect. */
export function logFailureByKind(log: Log, event: string, error: unknown): void {
  if (publicError(error).code === 'internal') log.error(event, { error });
  else log.debug(event, { error });
}
