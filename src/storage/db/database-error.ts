import postgres from 'postgres';

/** No connection was available: nothing was sent, so the work can be retried safely. */
export class DatabaseUnavailableError extends Error {
  override readonly name = 'DatabaseUnavailableError';
}

/** The connection was lost, or its deadline passed, after work was sent: it may have been committed or not. */
export class CommitUnknownError extends Error {
  override readonly name = 'CommitUnknownError';
}

/**
 * PostgreSQL's error for an unknown setting. Code that gets it when a session begins takes the server for one before
 * 9.6.
 */
export const UNKNOWN_SETTING_SQLSTATE = '42704';
/** PostgreSQL is shutting down, and has reported it. */
export class ServerShutdownError extends Error {
  override readonly name = 'ServerShutdownError';
}

/** The error of a write where no write is possible: on a standby, or in a read-only server or transaction. */
export const READ_ONLY_SQLSTATE = '25006';

/** The errors of servers that do not implement a function (some clouds), do not permit it, or do not know it. */
export const FUNCTION_UNAVAILABLE_SQLSTATES: ReadonlySet<string> = new Set(['0A000', '42501', '42883']);

/** The SQLSTATE of an error from PostgreSQL itself, else null. */
export function sqlState(error: unknown): string | null {
  return error instanceof postgres.PostgresError ? error.code : null;
}

/** True for a violation of the named unique constraint or index. */
export function violatesUnique(error: unknown, constraint: string): boolean {
  return error instanceof postgres.PostgresError && error.code === '23505' && error.constraint_name === constraint;
}

/**
 * True for errors with which PostgreSQL ends a session: an administrator's or a crash's shutdown (class 57P) and lost
 * connections (class 08). It is also true for every FATAL or PANIC, such as a log that cannot be written during a
 * commit. The session's work has an unknown outcome.
 */
export function isConnectionFatal(error: unknown): boolean {
  if (!(error instanceof postgres.PostgresError)) return false;
  return /^(57P|08)/.test(error.code) || error.severity === 'FATAL' || error.severity === 'PANIC';
}

/**
 * True for errors that a retry may avoid:
 * - a serialization failure or a deadlock,
 * - a lock that was not available,
 * - a referenced row that was deleted meanwhile,
 * - a server without resources (class 53), or one that cancelled the statement or is stopping (class 57).
 */
export function isTransient(error: unknown): boolean {
  return /^(?:23503$|40001$|40P01$|55P03$|53|57)/.test(sqlState(error) ?? '');
}

/**
 * True for work that PostgreSQL has rolled back because it was stopping. PostgreSQL reports its stop only before a
 * commit; after a commit the session ends without a message. This holds only for work of one statement.
 */
export function wasRolledBackByShutdown(error: unknown): boolean {
  return error instanceof CommitUnknownError && error.cause instanceof ServerShutdownError;
}

/**
 * True for errors that only a changed program or schema avoids: errors of JavaScript itself, and statements that
 * PostgreSQL refuses for another reason than its state.
 */
export function isDefect(error: unknown): boolean {
  if (error instanceof postgres.PostgresError)
    return !isTransient(error) && !isConnectionFatal(error) && error.code !== READ_ONLY_SQLSTATE;
  return error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError;
}
