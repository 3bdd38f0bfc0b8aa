import postgres from 'postgres';

/** No connection could be had: nothing of the work was sent, so it can be repeated safely. */
export class DatabaseUnavailableError extends Error {
  override readonly name = 'DatabaseUnavailableError';
}

/** The connection was lost, or its deadline passed, after work was sent: whether it was committed is not known. */
export class CommitUnknownError extends Error {
  override readonly name = 'CommitUnknownError';
}

/** The SQLSTATE of an error that PostgreSQL itself answered, else null. */
export function sqlState(error: unknown): string | null {
  return error instanceof postgres.PostgresError ? error.code : null;
}

/** True for a violation of the named unique constraint or index. */
export function violatesUnique(error: unknown, constraint: string): boolean {
  return error instanceof postgres.PostgresError && error.code === '23505' && error.constraint_name === constraint;
}

/**
 * PostgreSQL's own words for "this session is over": an administrator's or a crash's shutdown (class 57P), lost
 * connections (class 08), and whatever comes as FATAL or PANIC, such as a log that cannot be written in the middle of a
 * commit. What the session was doing has an unknown outcome.
 */
export function isConnectionFatal(error: unknown): boolean {
  if (!(error instanceof postgres.PostgresError)) return false;
  return /^(57P|08)/.test(error.code) || error.severity === 'FATAL' || error.severity === 'PANIC';
}

/**
 * True for what is another thing next time: a deadlock, a lock that was not to be had, a row that was referred to and went
 * in the middle, a server without room (class 53), one that is told to stop (class 57).
 */
export function isTransient(error: unknown): boolean {
  return /^(?:23503$|40001$|40P01$|55P03$|53|57)/.test(sqlState(error) ?? '');
}
