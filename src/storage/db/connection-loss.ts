import { types } from 'node:util';
import type { ConnectionTarget, ServerAddress } from './connection-target.ts';
import {
  CommitUnknownError,
  DatabaseUnavailableError,
  isConnectionFatal,
  sqlState,
  UNKNOWN_SETTING_SQLSTATE,
} from './database-error.ts';

/** Turns the errors of a lost connection into CommitUnknownError; returns every other error unchanged. */
export function connectionLossToCommitUnknown(error: unknown): unknown {
  if (error instanceof DatabaseUnavailableError || error instanceof CommitUnknownError) return error;
  if (!isConnectionFatal(error) && !isConnectionError(error)) return error;
  return new CommitUnknownError(`the connection to the database was lost: ${connectionErrorText(error)}`, {
    cause: error,
  });
}

function isConnectionError(error: unknown): boolean {
  // Checks the code alone: errors of Node.js itself are not instances of `Error` in another VM context, such as that of
  // the tests.
  const code = (error as { readonly code?: unknown } | null)?.code;
  if (typeof code !== 'string' || sqlState(error) !== null) return false;
  return code.startsWith('CONNECTION_') || code === 'CONNECT_TIMEOUT' || /^E[A-Z]+$/.test(code);
}

/**
 * SQLSTATE and function in PostgreSQL's source when pg_hba.conf rejects a login; the text of the error may be in any
 * language.
 */
const PG_HBA_REJECTION = { sqlState: '28000', routine: 'ClientAuthentication' };

/** Returns the reason why a session could not start, as a text for people. */
export function greetingErrorText(error: unknown, { tls = null }: ConnectionTarget, { host }: ServerAddress): string {
  const text = connectionErrorText(error);
  const { routine } = error as { readonly routine?: string };
  const isRefused = sqlState(error) === PG_HBA_REJECTION.sqlState && routine === PG_HBA_REJECTION.routine;
  if (!isRefused || tls !== null || host.startsWith('/')) return text;
  return `${text} (without TLS; where pg_hba.conf has hostssl lines alone, set services.postgresql.tls = verify-full)`;
}

/** The text of an error, for people. */
function connectionErrorText(error: unknown): string {
  if (sqlState(error) === UNKNOWN_SETTING_SQLSTATE) return 'this PostgreSQL is too old: Klatch needs 11 or newer';
  // Recognises also errors of Node.js itself, which are not instances of `Error` in another VM context, such as that of
  // the tests.
  if (!types.isNativeError(error)) return 'no reason given';
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'CONNECT_TIMEOUT') return 'it took the connection and did not answer';
  return error.message === '' ? (code ?? error.name) : error.message;
}
