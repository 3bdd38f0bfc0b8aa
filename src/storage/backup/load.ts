import { finished } from 'node:stream/promises';
import type { Writable } from 'node:stream';
import type { LogEpoch } from '../../model/ids.ts';
import { Connection, type ConnectionTarget, type Transaction } from '../db/connection.ts';
import { connectionLossToCommitUnknown } from '../db/connection-loss.ts';
import { sqlState } from '../db/database-error.ts';
import { applyMigrations } from '../db/migrate.ts';
import { listMigrations, readMigrations, type Migration, type MigrationId } from '../db/migration-files.ts';
import { findSchemaMismatch } from '../db/schema-compatibility.ts';
import { requireNoRunningServer } from '../rotate-secret.ts';
import { deleteTimelineDecision } from '../hooks/timeline-barrier.ts';
import { ensureDayPartition } from '../retention/retention.ts';
import { unassignRestoredStoreId } from '../files/store-id.ts';
import { raiseLogEpochWithin } from '../messages/log-epoch.ts';
import { fitsCanary, opensCanary, WrongSecretError, type Sealer } from '../db/sealed.ts';
import { readSupportedVersion } from '../db/server-version.ts';
import { BackupError, type BackupHeader, type BackupTable } from './format.ts';
import { WHOLE_COPY_TIMEOUT_MS, LOCK_NOT_AVAILABLE, setCopySettings } from './snapshot.ts';
import { StallDetector } from './stall-detector.ts';
import { readDatabaseTables, writeSequences } from './tables.ts';
import { countRows, type CopyProgress } from './write.ts';

/** The header of a backup without the configuration. */
type SourceHeader = Omit<BackupHeader, 'configuration'>;

interface LoadOptions {
  /**
   * Checks that the secret belongs to the loaded data; null: the data comes from a database of the same configuration.
   */
  readonly sealer: Sealer | null;
  /**
   * The message log begins a new epoch, greater than this number: clients may have seen changes that the loaded data
   * lacks. Not given: the loaded data is complete.
   */
  readonly newEpochAbove?: number;
  readonly onProgress?: (progress: CopyProgress) => void;
  /** Aborts the load, with the reason of the signal. */
  readonly signal?: AbortSignal;
  readonly stallTimeoutMs?: number;
  /** The migrations to apply; by default those of this program. */
  readonly migrations?: readonly Migration[];
}

/** The result of a load. */
export interface DatabaseLoadResult {
  readonly rowCount: number;
  /** Migrations that were applied to the loaded data, since its schema was older. */
  readonly appliedMigrations: readonly string[];
  /** The new epoch of the message log; null: the log continues in the epoch of the loaded data. */
  readonly newEpoch: LogEpoch | null;
}

/**
 * Fills an empty database in one transaction: if the load fails, even by kill -9, the database is as empty as before.
 * `feed` calls `begin`, then `copyRows` for each table, in the order of the header; if it rejects, the transaction
 * rolls back. Rejects with the rejection of `feed`, BackupError, WrongSecretError, DatabaseInUseError,
 * DatabaseTooOldError, DatabaseUnavailableError or CommitUnknownError.
 */
export async function loadDatabase(
  target: ConnectionTarget,
  feed: (load: DatabaseLoader) => Promise<void>,
  options: LoadOptions,
): Promise<DatabaseLoadResult> {
  const connection = new Connection(target, 'restore');
  const watch = new StallDetector(
    () => new BackupError('Nothing moved for too long: the database takes nothing, or there is nothing to read.'),
    options.stallTimeoutMs,
  );
  const onAbort = (): void => watch.abort(options.signal?.reason as Error);
  const close = (): void => connection.close();
  options.signal?.addEventListener('abort', onAbort);
  watch.signal.addEventListener('abort', close);
  let failure: { readonly error: unknown } | null = null;
  try {
    options.signal?.throwIfAborted();
    return await connection.run<DatabaseLoadResult>(
      (sql) =>
        sql.begin(async (tx) => {
          await setCopySettings(tx);
          const load = new DatabaseLoader(tx, watch, options);
          await feed(load).catch((error: unknown) => {
            failure = { error };
            throw error;
          });
          return load.finish();
        }),
      WHOLE_COPY_TIMEOUT_MS,
    );
  } catch (error) {
    watch.signal.throwIfAborted();
    // If `feed` failed, throws its error: a backup that cannot be read must not look like a failure of the database.
    throw failure === null ? error : (failure as { readonly error: unknown }).error;
  } finally {
    options.signal?.removeEventListener('abort', onAbort);
    watch.stop();
    connection.close();
  }
}

/** A load in progress. */
class DatabaseLoader {
  readonly #tx: Transaction;
  readonly #watch: StallDetector;
  readonly #options: LoadOptions;
  readonly #migrations: readonly Migration[];
  readonly #sentRowsByTable = new Map<string, number>();
  #sourceHeader: SourceHeader | null = null;
  #loadedRows = 0;
  #loadedBytes = 0;

  constructor(tx: Transaction, watch: StallDetector, options: LoadOptions) {
    this.#tx = tx;
    this.#watch = watch;
    this.#options = options;
    this.#migrations = options.migrations ?? readMigrations();
  }

  /** Creates the schema of the database that the rows come from. Before that it makes all checks that need no rows. */
  async begin(source: SourceHeader): Promise<void> {
    try {
      await this.#begin(source);
    } catch (error) {
      const explained = connectionLossToCommitUnknown(error);
      const state = sqlState(explained);
      if (state === null) throw explained;
      // PostgreSQL has refused a statement, for instance because the role has no right to create tables.
      const sentence = `The database cannot be filled (${(explained as Error).message}, SQLSTATE ${state}).`;
      throw new BackupError(sentence, { cause: error });
    }
  }

  async #begin(source: SourceHeader): Promise<void> {
    const tx = this.#tx;
    this.#sourceHeader = source;
    checkBackupSchema(source, this.#migrations);
    await readSupportedVersion(tx);
    await this.#lockOutOtherUses();
    await this.#requireUtf8();
    await requireEmptyThenDropTables(tx);
    await applyMigrations(tx, this.#migrations.slice(0, source.schema));
    const contents = await readDatabaseTables(tx);
    if (JSON.stringify(contents.tables) !== JSON.stringify(source.tables)) {
      throw new BackupError(
        `The tables do not look as schema ${source.schema} does in this Klatch: they come from another program.`,
      );
    }
    // The secret is checked before hours of loading; `finish` checks it again with the loaded canary.
    const { secret_canary: canary } = source;
    const { sealer } = this.#options;
    if (sealer !== null && canary !== null && !fitsCanary(sealer, canary)) throw wrongSecretError();
    for (const day of source.days) await ensureDayPartition(tx, parseDay(day));
    // From here on the load is aborted if it makes no progress for a while.
    this.#watch.start();
  }

  /** Copies rows into one table. */
  async copyRows(table: string, content: AsyncIterable<Buffer>): Promise<void> {
    const { columns } = this.#sourceHeader!.tables.find(({ name }) => name === table)!;
    const copy = await startCopyIn(this.#tx, { name: table, columns });
    let tableRows = 0;
    try {
      for await (const chunk of content) {
        this.#watch.recordProgress();
        tableRows += countRows(chunk);
        this.#loadedBytes += chunk.length;
        await copy.write(chunk);
        this.#options.onProgress?.({ table, rows: this.#loadedRows + tableRows, bytes: this.#loadedBytes });
      }
      await copy.end();
    } catch (error) {
      // Without this call the database session would wait for more data.
      copy.abandon(error as Error);
      throw loadError(error, table);
    }
    this.#loadedRows += tableRows;
    this.#sentRowsByTable.set(table, tableRows);
  }

  /** Finishes the load once all rows are there; the transaction commits after it. */
  async finish(): Promise<DatabaseLoadResult> {
    const sourceHeader = this.#sourceHeader;
    if (sourceHeader === null) throw new Error('a load ended before it began');
    const tx = this.#tx;
    // Only single statements follow, which report no progress.
    this.#watch.stop();
    for (const { name } of sourceHeader.tables) await this.#verifyTableHoldsLoadedRows(name);
    await writeSequences(tx, sourceHeader.sequences);
    await fenceOffOldLeases(tx);
    const { sealer } = this.#options;
    if (sealer !== null && (await opensCanary(tx, sealer)) === false) throw wrongSecretError();
    const appliedMigrations = await applyMigrations(tx, this.#migrations);
    // A restored copy is a separate installation with a file store of its own, which the next start marks with a new
    // store id.
    if (sealer !== null) await unassignRestoredStoreId(tx);
    await deleteTimelineDecision(tx);
    const { newEpochAbove } = this.#options;
    const newEpoch = newEpochAbove === undefined ? null : await raiseLogEpochWithin(tx, newEpochAbove);
    // With these statistics PostgreSQL plans the first statements for the loaded rows.
    for (const { name } of sourceHeader.tables) await tx`analyze ${tx(name)}`;
    return { rowCount: this.#loadedRows, appliedMigrations, newEpoch };
  }

  async #lockOutOtherUses(): Promise<void> {
    try {
      await requireNoRunningServer(this.#tx);
    } catch (error) {
      if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
      const sentence = 'Another Klatch is at work on this database. Repeat this when that is done.';
      throw new BackupError(sentence, { cause: error });
    }
  }

  async #verifyTableHoldsLoadedRows(table: string): Promise<void> {
    const [row] = await this.#tx<{ count: number }[]>`select count(*) as count from ${this.#tx(table)}`;
    const expected = this.#sentRowsByTable.get(table) ?? 0;
    if (row!.count === expected) return;
    throw new BackupError(`${table} has ${row!.count} rows after ${expected} were loaded. Nothing was kept.`);
  }

  async #requireUtf8(): Promise<void> {
    const [row] = await this.#tx<{ name: string }[]>`select current_setting('server_encoding') as name`;
    if (row!.name === 'UTF8') return;
    throw new BackupError(
      `The database is encoded in ${row!.name}. Make it with "create database … encoding 'UTF8' template template0".`,
    );
  }
}

/** Throws BackupError for a backup whose schema a program with the migrations `known` cannot create. */
export function checkBackupSchema(
  { schema, migrations }: Pick<SourceHeader, 'schema' | 'migrations'>,
  known: readonly MigrationId[] = listMigrations(),
): void {
  const backupMigrations = migrations.map((name, index) => ({ version: index + 1, name }));
  const mismatch = findSchemaMismatch(backupMigrations, known);
  if (mismatch === null && backupMigrations.length === schema) return;
  switch (mismatch?.kind) {
    case 'newer':
      throw new BackupError(
        `This is of schema ${schema}, and this Klatch knows ${known.length}: load it with the newer Klatch.`,
      );
    case 'development-build':
      throw new BackupError(
        `This has the migration 1 ${backupMigrations[0]!.name}, so a development build of Klatch before 0.1.0 made it, and this Klatch ` +
          'cannot load it: load it with that build, or start with an empty database.',
      );
    default:
      throw new BackupError('The migrations behind this are not those of Klatch: it comes from another program.');
  }
}

function wrongSecretError(): WrongSecretError {
  return new WrongSecretError(
    'secret differs from the one this was made with: put the `secret` of that server into server.conf and repeat ' +
      '("klatch keys rotate-secret" can change it afterwards). Nothing was loaded',
  );
}

/**
 * Rejects with BackupError unless the database is empty; drops its tables. A database is empty if it has no tables, or
 * only Klatch's, and Klatch's tables for a backup have no rows except in `setting`.
 */
async function requireEmptyThenDropTables(tx: Transaction): Promise<void> {
  const rows = await tx<{ name: string; kind: string; partition: boolean }[]>`
    select c.relname as name, c.relkind::text as kind, c.relispartition as partition from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f')`;
  if (rows.length === 0) return;
  const { tables, nonKlatchTables } = await readDatabaseTables(tx);
  const usedRelations: string[] = [
    ...nonKlatchTables,
    ...rows.filter(({ kind }) => kind !== 'r' && kind !== 'p').map(({ name }) => name),
  ];
  for (const { name } of tables) {
    if (name === 'setting') continue;
    const [row] = await tx<{ used: boolean }[]>`select exists (select from ${tx(name)}) as used`;
    if (row!.used) usedRelations.push(name);
  }
  if (usedRelations.length > 0) {
    throw new BackupError(
      `The database is not empty (${usedRelations.slice(0, 5).join(', ')}${usedRelations.length > 5 ? ' …' : ''}). ` +
        'It is filled only where nothing can be lost: make an empty one, or name another in server.conf.',
    );
  }
  for (const { name } of rows.filter(({ partition }) => !partition)) await tx`drop table ${tx(name)} cascade`;
}

/**
 * The loaded database must refuse settlements by processes that hold leases of other copies of it. The epochs of leases
 * count from 0, so the current time in seconds is an epoch that no lease has had.
 */
async function fenceOffOldLeases(tx: Transaction): Promise<void> {
  await tx`update lease set holder = null, expires_at = '-infinity', epoch = floor(extract(epoch from clock_timestamp()))`;
}

function parseDay(day: string): Date {
  return new Date(`${day.slice(0, 4)}-${day.slice(4, 6)}-${day.slice(6)}T00:00:00Z`);
}

/**
 * Wraps an error of a table's copy, without PostgreSQL's message where that may quote a row. A full disk or a lost
 * connection stays recognizable.
 */
function loadError(error: unknown, table: string): unknown {
  const state = sqlState(error);
  if (state === null) return error;
  const why = /^2[23]/.test(state) ? `SQLSTATE ${state}` : `${(error as Error).message}, SQLSTATE ${state}`;
  return new BackupError(`The database did not take the rows of ${table} (${why}). Nothing was loaded.`, {
    cause: error,
  });
}

interface CopyInWriter {
  write(chunk: Buffer): Promise<void>;
  end(): Promise<void>;
  abandon(reason: Error): void;
}

async function startCopyIn(tx: Transaction, { name, columns }: BackupTable): Promise<CopyInWriter> {
  const query = tx`copy ${tx(name)} (${tx([...columns])}) from stdin`;
  const stream: Writable = await query.writable();
  // The postgres library passes an error after the last row only to its query, which has already resolved with the
  // stream. Without this line the stream would wait forever.
  Reflect.set(query, 'reject', (error: Error) => stream.destroy(error));
  const done = finished(stream);
  done.catch(() => {});
  return {
    write: (chunk) =>
      new Promise((resolve, reject) => {
        stream.write(chunk, (error) => (error ? reject(connectionLossToCommitUnknown(error)) : resolve()));
      }),
    end: async () => {
      stream.end();
      await done.catch((error: unknown) => {
        throw connectionLossToCommitUnknown(error);
      });
    },
    abandon: (reason) => {
      stream.destroy(reason);
    },
  };
}
