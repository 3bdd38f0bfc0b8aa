import postgres from 'postgres';

/** No connection could be had: nothing of the work was sent, so it can be repeated safely. */
export class DatabaseUnavailableError extends Error {
  override readonly name = 'DatabaseUnavailableError';
}

/** The connection was lost, or its deadline passed, after work was sent: whether it was committed is not known. */
export class CommitUnknownError extends Error {
  override readonly name = 'CommitUnknownError';
}

/** What servers before 9.6 refuse our sessions with: they do not know a setting that each begins with. */
export const UNKNOWN_SETTING_SQLSTATE = '42704';
/** PostgreSQL was told to stop, and has said so. */
export class ServerShutdownError extends Error {
  override readonly name = 'ServerShutdownError';
}

/** Something was to be written where nothing can be: a standby, or a server or transaction that is set to be read-only. */
export const READ_ONLY_SQLSTATE = '25006';

/** Of servers that do not know a function, let nobody call it, or have none of their own (some clouds). */
export const FUNCTION_NOT_TO_BE_HAD_SQLSTATES: ReadonlySet<string> = new Set(['0A000', '42501', '42883']);

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

/**
 * True for work that PostgreSQL has rolled back because it was told to stop: it says so before a commit and never after
 * one, where the session ends without a word. It holds for work of one statement only.
 */
export function wasRolledBackByShutdown(error: unknown): boolean {
  return error instanceof CommitUnknownError && error.cause instanceof ServerShutdownError;
}
