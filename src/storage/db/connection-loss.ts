import { types } from 'node:util';
import type { ConnectionTarget, ServerAddress } from './connection-target.ts';
import {
  CommitUnknownError,
  DatabaseUnavailableError,
  isConnectionFatal,
  sqlState,
  UNKNOWN_SETTING_SQLSTATE,
} from './database-error.ts';

/** CommitUnknownError for what a connection that ended leaves its statements and streams with; every other error as it is. */
export function connectionLossToCommitUnknown(error: unknown): unknown {
  if (error instanceof DatabaseUnavailableError || error instanceof CommitUnknownError) return error;
  if (!isConnectionFatal(error) && !isConnectionError(error)) return error;
  return new CommitUnknownError(`the connection to the database was lost: ${connectionErrorText(error)}`, {
    cause: error,
  });
}

function isConnectionError(error: unknown): boolean {
  // By its code alone: an error of Node's own is no Error of ours inside a context of its own, as of the tests.
  const code = (error as { readonly code?: unknown } | null)?.code;
  if (typeof code !== 'string' || sqlState(error) !== null) return false;
  return code.startsWith('CONNECTION_') || code === 'CONNECT_TIMEOUT' || /^E[A-Z]+$/.test(code);
}

/** SQLSTATE and function of PostgreSQL where pg_hba.conf lets nobody in; its sentence may be in any language. */
const NO_ENTRY = { sqlState: '28000', routine: 'ClientAuthentication' };

/** Why a session could not be begun, for people. */
export function greetingErrorText(error: unknown, { tls = null }: ConnectionTarget, { host }: ServerAddress): string {
  const text = connectionErrorText(error);
  const { routine } = error as { readonly routine?: string };
  const isRefused = sqlState(error) === NO_ENTRY.sqlState && routine === NO_ENTRY.routine;
  if (!isRefused || tls !== null || host.startsWith('/')) return text;
  return `${text} (without TLS; where pg_hba.conf has hostssl lines alone, set services.postgresql.tls = verify-full)`;
}

/** What an error says, for people. */
function connectionErrorText(error: unknown): string {
  if (sqlState(error) === UNKNOWN_SETTING_SQLSTATE) return 'this PostgreSQL is too old: Klatch needs 11 or newer';
  // Of Node's own as well, which are no Errors of ours inside a context of their own, as of the tests.
  if (!types.isNativeError(error)) return 'no reason given';
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'CONNECT_TIMEOUT') return 'it took the connection and did not answer';
  return error.message === '' ? (code ?? error.name) : error.message;
}
