import type { Transaction } from './connection.ts';
import { isConnectionFatal, sqlState } from './database-error.ts';
import { readMigrations, type Migration } from './migration-files.ts';
import type { Pool } from './pool.ts';
import { checkSchemaReturningVersion } from './schema-compatibility.ts';

/** The database refused a migration; all pending migrations were rolled back. */
export class MigrationFailedError extends Error {
  override readonly name = 'MigrationFailedError';
}

/** The key of the advisory lock for migrations, which all programs that migrate a database use: 'klatc' in ASCII. */
export const SCHEMA_LOCK_KEY = 0x6b6c617463;
/**
 * The time-out of the migrations. Building an index on a large table takes long, and so does the wait for another
 * node's migration.
 */
const MIGRATION_TIMEOUT_MS = 30 * 60_000;

/**
 * Brings a database to this program's schema: forward only, and all pending migrations in one transaction. So a failure
 * leaves the database as it was for the previous program. Of several nodes that start at once one migrates, while the
 * others wait for its lock. Returns the names of the migrations applied here. Rejects with IncompatibleSchemaError when
 * the database has migrations that this program does not have, and with MigrationFailedError.
 */
export async function migrate(pool: Pool, options: MigrateOptions = {}): Promise<string[]> {
  const { migrations = readMigrations(), onWaiting = () => {} } = options;
  // Shares the lock with backups and other starting nodes. `keys rotate-secret` holds it exclusively, so the start
  // waits for that.
  const schemaVersion = await pool.transaction(async (tx) => {
    await disableTimeouts(tx);
    await tx`select pg_advisory_xact_lock_shared(${SCHEMA_LOCK_KEY})`;
    return checkSchemaReturningVersion(tx, migrations);
  }, MIGRATION_TIMEOUT_MS);
  if (schemaVersion === migrations.length) return [];
  return pool.transaction(async (tx) => {
    await disableTimeouts(tx);
    if (await isBackupRunning(tx))
      onWaiting('a backup of this database runs: the schema is changed when that has ended');
    await tx`select pg_advisory_xact_lock(${SCHEMA_LOCK_KEY})`;
    return applyMigrations(tx, migrations);
  }, MIGRATION_TIMEOUT_MS);
}

interface MigrateOptions {
  /** The migrations to apply; by default those of this program. */
  readonly migrations?: readonly Migration[];
  /** Called with a sentence when another process has to be waited for. */
  readonly onWaiting?: (sentence: string) => void;
}

/** The name of a backup's session. A backup holds the lock of migrations in shared mode. */
export const BACKUP_SESSION_NAME = 'backup';

async function isBackupRunning(tx: Transaction): Promise<boolean> {
  const rows = await tx`
    select from pg_stat_activity
    where datname = current_database() and application_name = ${`klatch ${BACKUP_SESSION_NAME}`} limit 1`;
  return rows.length > 0;
}

/** Makes statements take as long as they need, until the deadline of the caller's transaction. */
async function disableTimeouts(tx: Transaction): Promise<void> {
  await tx`set local lock_timeout = 0`;
  await tx`set local statement_timeout = 0`;
  await tx`set local idle_in_transaction_session_timeout = 0`;
}

/**
 * Applies those of `migrations` that the database lacks, in a transaction of the caller that holds the lock
 * `SCHEMA_LOCK_KEY`. It returns names and rejects as `migrate` does.
 */
export async function applyMigrations(tx: Transaction, migrations: readonly Migration[]): Promise<string[]> {
  await tx`create table if not exists schema_version (
    version integer primary key, name text not null, applied_at timestamptz not null default now())`;
  const version = await checkSchemaReturningVersion(tx, migrations);
  const pending = migrations.slice(version);
  for (const step of pending) {
    // Inserts the version row first: if another node applies the same migration without the lock, the insert fails, and
    // the schema is not built twice.
    await tx`insert into schema_version (version, name) values (${step.version}, ${step.name})`;
    try {
      await tx.unsafe(step.sqlText);
    } catch (error) {
      throw toMigrationError(error, step, version);
    }
  }
  return pending.map(({ version: number, name }) => `${number} ${name}`);
}

/**
 * Turns PostgreSQL's refusal of a migration into a MigrationFailedError. Returns the error of a lost connection
 * unchanged: the migration did not cause it.
 */
function toMigrationError(error: unknown, { version, name }: Migration, from: number): unknown {
  if (sqlState(error) === null || isConnectionFatal(error)) return error;
  const stateAndRemedy =
    from === 0
      ? 'nothing was made; put that right and start again'
      : `nothing was changed, the database is at schema ${from} as before: the former Klatch can be started again; ` +
        'put that right, or report it, and then start this one';
  return new MigrationFailedError(
    `the migration ${version} ${name} failed (${refusalText(error as Error)}): ${stateAndRemedy}`,
    {
      cause: error,
    },
  );
}

/** Returns PostgreSQL's message, but only the code of data and constraint errors, whose message can quote a value. */
function refusalText(error: Error): string {
  const state = sqlState(error) ?? '';
  return /^2[23]/.test(state) ? `SQLSTATE ${state}` : `${error.message}, SQLSTATE ${state}`;
}
