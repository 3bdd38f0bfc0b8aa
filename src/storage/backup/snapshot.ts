import type { Readable } from 'node:stream';
import { Connection, type ConnectionTarget, type Sql, type Transaction } from '../db/connection.ts';
import { connectionLossToCommitUnknown } from '../db/connection-loss.ts';
import { sqlState } from '../db/database-error.ts';
import { SCHEMA_LOCK_KEY, BACKUP_SESSION_NAME } from '../db/migrate.ts';
import { listMigrations } from '../db/migration-files.ts';
import { checkSchemaReturningVersion } from '../db/schema-compatibility.ts';
import { CANARY_NAME } from '../db/sealed.ts';
import { readSupportedVersion } from '../db/server-version.ts';
import { BackupError, BACKUP_FORMAT_VERSION, type BackupHeader, type BackupTable } from './format.ts';
import { EXCLUDED_TABLE_REASONS, readDatabaseTables, readSequences } from './tables.ts';

/** The time-out of the whole copy; `StallDetector` reports a stall much earlier. */
export const WHOLE_COPY_TIMEOUT_MS = 7 * 24 * 60 * 60_000;
/** The time-out of the wait for a lock on a table, for instance while an administrator changes the table. */
const LOCK_TIMEOUT_MS = 60_000;
/** PostgreSQL's code for a lock time-out. */
export const LOCK_NOT_AVAILABLE = '55P03';
/**
 * PostgreSQL ends a session of a copy that is idle for this time. It is longer than the time-out of `StallDetector`.
 */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 20 * 60_000;

/** The data of a database, all from one snapshot. */
export interface SnapshotReader {
  /** The header without the configuration. */
  readonly header: Omit<BackupHeader, 'configuration'>;
  /**
   * The rows of a table in the text format of `copy`. Only one table at a time can be copied, and its rows have to be
   * read to their end.
   */
  readonly copy: (table: BackupTable) => AsyncGenerator<Buffer, void, undefined>;
}

interface SnapshotOptions {
  /** The version of Klatch. */
  readonly klatchVersion: string;
  readonly signal: AbortSignal;
}

/**
 * Runs `work` in one read-only transaction on a connection of its own, with one snapshot of the database. Each table is
 * locked (against changes of the schema only) no longer than it is copied. Migrations would change the remaining
 * tables: they wait until the copy ends, and report that they wait. Rejects with BackupError, IncompatibleSchemaError,
 * DatabaseTooOldError, DatabaseUnavailableError, CommitUnknownError, the signal's reason, or the rejection of `work`.
 */
export async function withSnapshot<T>(
  target: ConnectionTarget,
  options: SnapshotOptions,
  work: (snapshot: SnapshotReader) => Promise<T>,
): Promise<T> {
  const connection = new Connection(target, BACKUP_SESSION_NAME);
  const { signal } = options;
  const close = (): void => connection.close();
  signal.throwIfAborted();
  signal.addEventListener('abort', close);
  let failure: { readonly error: unknown } | null = null;
  try {
    return await connection.run(async (sql) => {
      await blockMigrations(sql);
      return (await sql.begin('isolation level repeatable read read only', async (tx) => {
        await setCopySettings(tx);
        await tx`savepoint header`;
        const header = await readBackupHeader(tx, options.klatchVersion);
        await tx`rollback to savepoint header`;
        try {
          return await work({ header, copy: (table) => copyOut(tx, table) });
        } catch (error) {
          // A rollback cannot end a `copy` statement whose rows were read only in part, so the connection closes.
          failure = { error };
          connection.close();
          throw error;
        }
      })) as T;
    }, WHOLE_COPY_TIMEOUT_MS);
  } catch (error) {
    signal.throwIfAborted();
    // If `work` failed, throws its error, and not the later error of the closed connection.
    throw failure === null ? error : (failure as { readonly error: unknown }).error;
  } finally {
    signal.removeEventListener('abort', close);
    connection.close();
  }
}

/**
 * Excludes migrations, but not other backups, until the session ends. It runs before the transaction: a transaction
 * that took its snapshot and then waited for a migration would find tables without visible rows.
 */
async function blockMigrations(sql: Sql): Promise<void> {
  try {
    await sql`select set_config('lock_timeout', ${String(LOCK_TIMEOUT_MS)}, false)`;
    await sql`select pg_advisory_lock_shared(${SCHEMA_LOCK_KEY})`;
  } catch (error) {
    if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
    const sentence = 'The schema or the secret of the database is being changed. Repeat this when that is done.';
    throw new BackupError(sentence, { cause: error });
  }
}

/** Sets the transaction's time-outs: an administrator may have limited every statement of Klatch's role. */
export async function setCopySettings(tx: Transaction): Promise<void> {
  const transactionSettings = {
    statement_timeout: 0,
    transaction_timeout: 0,
    lock_timeout: LOCK_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    datestyle: 'ISO, YMD',
  };
  // Selects the settings by name, because a version of PostgreSQL may lack one of them.
  for (const [name, value] of Object.entries(transactionSettings)) {
    await tx`select set_config(name, ${String(value)}, true) from pg_settings where lower(name) = ${name}`;
  }
}

async function readBackupHeader(tx: Transaction, klatchVersion: string): Promise<SnapshotReader['header']> {
  try {
    return await queryBackupHeader(tx, klatchVersion);
  } catch (error) {
    throw toBackupError(error, 'list of its tables');
  }
}

async function queryBackupHeader(tx: Transaction, klatchVersion: string): Promise<SnapshotReader['header']> {
  const postgresql = await readSupportedVersion(tx);
  const schema = await checkSchemaReturningVersion(tx);
  if (schema === 0) throw new BackupError('No Klatch has worked on this database yet: there is nothing to copy.');
  const { tables, days, nonKlatchTables } = await readDatabaseTables(tx);
  const [canary] = await tx<{ value: string }[]>`select value from setting where name = ${CANARY_NAME}`;
  const excludedTables = [
    ...Object.entries(EXCLUDED_TABLE_REASONS).map(([table, reason]) => ({ table, reason })),
    ...nonKlatchTables.map((table) => ({ table, reason: 'not a table of Klatch' })),
  ];
  return {
    format: BACKUP_FORMAT_VERSION,
    klatch: klatchVersion,
    schema,
    migrations: listMigrations()
      .slice(0, schema)
      .map(({ name }) => name),
    postgresql,
    taken_at: new Date().toISOString(),
    secret_canary: canary?.value ?? null,
    tables: [...tables],
    days: [...days],
    sequences: await readSequences(tx, tables),
    left_out: excludedTables,
  };
}

async function* copyOut(tx: Transaction, { name, columns }: BackupTable): AsyncGenerator<Buffer, void, undefined> {
  try {
    await tx`savepoint part`;
    const rows = await tx`copy (select ${tx([...columns])} from ${tx(name)}) to stdout`.readable();
    for await (const chunk of rows as AsyncIterable<Buffer>) yield chunk;
    resumeSocket(rows);
    // The transaction wrote nothing. The rollback only releases the table's lock.
    await tx`rollback to savepoint part`;
  } catch (error) {
    throw toBackupError(error, `rows of ${name}`);
  }
}

/**
 * The postgres library pauses its socket while unread rows exceed the stream's buffer, and resumes it in the stream's
 * `_read`. An ended stream never calls `_read` again. If the last rows paused the socket and PostgreSQL's
 * `ReadyForQuery` came in a later packet, the session stayed paused and the backup hung (seen once, on a slow machine).
 */
function resumeSocket(rows: Readable): void {
  rows._read(0);
}

/** Turns PostgreSQL's errors into a BackupError with a sentence for people; returns a lost connection as such. */
function toBackupError(error: unknown, what: string): unknown {
  const explained = connectionLossToCommitUnknown(error);
  const state = sqlState(explained);
  if (state === null) return explained;
  const message = `The database did not give the ${what} (${(explained as Error).message}, SQLSTATE ${state}).`;
  return new BackupError(message, { cause: error });
}
