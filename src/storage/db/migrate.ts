import type { Transaction } from './connection.ts';
import { isConnectionFatal, sqlState } from './database-error.ts';
import { readMigrations, type Migration } from './migration-files.ts';
import type { Pool } from './pool.ts';
import { checkSchemaReturningVersion } from './schema-compatibility.ts';

/** A migration was refused by the database; all that was pending was rolled back. */
export class MigrationFailedError extends Error {
  override readonly name = 'MigrationFailedError';
}

/** 'klatc' in ASCII: one number for everybody who migrates a database. */
export const SCHEMA_LOCK_KEY = 0x6b6c617463;
/** Building an index on a large table takes its time; a node that waits for another one's migration as well. */
const TIMEOUT_MS = 30 * 60_000;

/**
 * Brings a database to this program's schema: forward only, and all that is pending in one transaction, so that a failure
 * leaves the database as it was for the program that it was made with. Of several nodes that start at once one migrates,
 * while the others wait for its lock. Returns the names of what was applied here. Rejects with IncompatibleSchemaError when
 * the database has migrations that this program does not have, and with MigrationFailedError.
 */
export async function migrate(pool: Pool, options: MigrateOptions = {}): Promise<string[]> {
  const { migrations = readMigrations(), onWaiting = () => {} } = options;
  // Beside backups and other starts, but not beside `keys rotate-secret`, which holds the lock for itself.
  const version = await pool.transaction(async (tx) => {
    await disableTimeouts(tx);
    await tx`select pg_advisory_xact_lock_shared(${SCHEMA_LOCK_KEY})`;
    return checkSchemaReturningVersion(tx, migrations);
  }, TIMEOUT_MS);
  if (version === migrations.length) return [];
  return pool.transaction(async (tx) => {
    await disableTimeouts(tx);
    if (await isBackupRunning(tx))
      onWaiting('a backup of this database runs: the schema is changed when that has ended');
    await tx`select pg_advisory_xact_lock(${SCHEMA_LOCK_KEY})`;
    return applyMigrations(tx, migrations);
  }, TIMEOUT_MS);
}

interface MigrateOptions {
  /** Those of the program if not given. */
  readonly migrations?: readonly Migration[];
  /** Told in a sentence when somebody has to be waited for. */
  readonly onWaiting?: (sentence: string) => void;
}

/** What a backup's session is called; it holds the lock of migrations together with others. */
export const BACKUP_SESSION_NAME = 'backup';

async function isBackupRunning(tx: Transaction): Promise<boolean> {
  const rows = await tx`
    select from pg_stat_activity
    where datname = current_database() and application_name = ${`klatch ${BACKUP_SESSION_NAME}`} limit 1`;
  return rows.length > 0;
}

/** For as long as the caller's deadline allows. */
async function disableTimeouts(tx: Transaction): Promise<void> {
  await tx`set local lock_timeout = 0`;
  await tx`set local statement_timeout = 0`;
  await tx`set local idle_in_transaction_session_timeout = 0`;
}

/**
 * Applies what is missing of `migrations` in a transaction of the caller's, who holds the lock; names as of `migrate`,
 * which says what it rejects with.
 */
export async function applyMigrations(tx: Transaction, migrations: readonly Migration[]): Promise<string[]> {
  await tx`create table if not exists schema_version (
    version integer primary key, name text not null, applied_at timestamptz not null default now())`;
  const version = await checkSchemaReturningVersion(tx, migrations);
  const pending = migrations.slice(version);
  for (const step of pending) {
    // The version row first: should another node not know the lock, it stops here instead of building the schema twice.
    await tx`insert into schema_version (version, name) values (${step.version}, ${step.name})`;
    try {
      await tx.unsafe(step.text);
    } catch (error) {
      throw toMigrationError(error, step, version);
    }
  }
  return pending.map(({ version: number, name }) => `${number} ${name}`);
}

/** A lost connection is told as that: it is no fault of the migration. */
function toMigrationError(error: unknown, { version, name }: Migration, from: number): unknown {
  if (sqlState(error) === null || isConnectionFatal(error)) return error;
  const former =
    from === 0
      ? 'nothing was made; put that right and start again'
      : `nothing was changed, the database is at schema ${from} as before: the former Klatch can be started again; ` +
        'put that right, or report it, and then start this one';
  return new MigrationFailedError(`the migration ${version} ${name} failed (${refusal(error as Error)}): ${former}`, {
    cause: error,
  });
}

/** PostgreSQL's words; where they can quote a value (data and constraint errors) the code alone. */
function refusal(error: Error): string {
  const state = sqlState(error) ?? '';
  return /^2[23]/.test(state) ? `SQLSTATE ${state}` : `${error.message}, SQLSTATE ${state}`;
}
