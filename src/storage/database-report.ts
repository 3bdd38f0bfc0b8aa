import type { ConnectionTarget, Transaction } from './db/connection.ts';
import { BACKUP_SESSION_NAME } from './db/migrate.ts';
import { listMigrations } from './db/migration-files.ts';
import { withReadOnlyTransaction } from './db/read-only.ts';
import { ServerGroup, type ServerUse } from './db/server-group.ts';
import { findSchemaMismatch, readAppliedMigrations, type SchemaMismatch } from './db/schema-compatibility.ts';
import { opensCanary, type Sealer } from './db/sealed.ts';
import { findStoreId } from './files/store-id.ts';
import { findLossRecord, type LossRecord } from './messages/loss-record.ts';

/** Facts about the database for its administrator; it contains no user data. */
export interface DatabaseReport {
  /** The servers that the configuration lists, and which of them was examined. */
  readonly serverUses: readonly ServerUse[];
  /** The version of PostgreSQL, such as "18.4". */
  readonly version: string;
  /** PostgreSQL's version number, such as 180004. */
  readonly versionNumber: number;
  readonly encoding: string;
  /** True: the server takes no writes (it is a standby, or has `default_transaction_read_only`). */
  readonly readOnly: boolean;
  /** PostgreSQL's setting `fsync`, as Klatch's sessions have it. */
  readonly fsync: string;
  readonly fullPageWrites: string;
  /**
   * The most connections that an ordinary user may have in all. `connectionsTaken`: how many connections of the server
   * are used.
   */
  readonly connections: number;
  readonly connectionsTaken: number;
  /** The number of connections to this database that Klatch's processes use. */
  readonly klatchConnections: number;
  /** The version of the schema; 0: no Klatch has used the database yet. */
  readonly schema: number;
  /** The reason why this program cannot use the schema; null: it can. */
  readonly schemaMismatch: SchemaMismatch | null;
  /** Whether `secret` opens the sealed values; null: there are none. */
  readonly secretFits: boolean | null;
  /** The store id, as `findStoreId` returns it; null also if there is no schema yet. */
  readonly storeId: string | null;
  /** The last time that a node found that this database lacks committed changes; null: never. */
  readonly loss: LossRecord | null;
  /** How far the database's clock is ahead of this process's. */
  readonly clockAheadMs: number;
  /**
   * The number of transactions that have been open for longer than {@link LONG_TRANSACTION_S}, of sessions that Klatch
   * may see, without backups.
   */
  readonly longTransactions: number;
  /** The number of requests for locks of this database that wait, even if only for a moment. */
  readonly waitingLocks: number;
  /** The pids of the sessions for which other sessions wait, at most ten. */
  readonly blockerPids: readonly number[];
}

/**
 * A transaction that is open for longer than this is reported. PostgreSQL cannot remove old rows while a transaction
 * that might see them is open.
 */
export const LONG_TRANSACTION_S = 300;

type ReportedColumns = Omit<
  DatabaseReport,
  'serverUses' | 'schema' | 'schemaMismatch' | 'secretFits' | 'storeId' | 'loss' | 'clockAheadMs'
>;

/**
 * Examines a database over a connection of its own, in a read-only transaction. Rejects with DatabaseUnavailableError
 * or CommitUnknownError, and with PostgreSQL's own error.
 */
export async function reportDatabase(
  target: ConnectionTarget,
  options: { sealer: Sealer; timeoutMs: number; longTransactionS?: number },
): Promise<DatabaseReport> {
  return withReadOnlyTransaction(target, options.timeoutMs, async (tx) => {
    const row = await readReportedColumns(tx, options.longTransactionS ?? LONG_TRANSACTION_S);
    const applied = row.versionNumber < 110_000 ? [] : await readAppliedMigrations(tx);
    const schema = applied.at(-1)?.version ?? 0;
    return {
      ...row,
      serverUses: ServerGroup.of(target).uses,
      schema,
      schemaMismatch: findSchemaMismatch(applied, listMigrations()),
      secretFits: schema === 0 ? null : await opensCanary(tx, options.sealer),
      storeId: schema === 0 ? null : await findStoreId(tx),
      loss: schema === 0 ? null : await findLossRecord(tx),
      clockAheadMs: await clockAheadMs(tx),
    };
  });
}

async function readReportedColumns(tx: Transaction, longTransactionS: number): Promise<ReportedColumns> {
  const [row] = await tx<ReportedColumns[]>`
    with waiting as (
      select pid from pg_locks
      where not granted and database = (select oid from pg_database where datname = current_database())
    ), role as (
      select rolconnlimit as bound from pg_roles where rolname = current_user and rolconnlimit >= 0
      union all
      select datconnlimit from pg_database where datname = current_database() and datconnlimit >= 0
      union all
      select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true)::int, 0)
    )
    select split_part(current_setting('server_version'), ' ', 1) as version,
      current_setting('server_version_num')::int as "versionNumber",
      current_setting('server_encoding') as encoding,
      pg_is_in_recovery() or (select setting = 'on' from pg_settings where name = 'default_transaction_read_only')
        as "readOnly",
      current_setting('fsync') as fsync, current_setting('full_page_writes') as "fullPageWrites",
      (select min(bound) from role) as connections,
      (select coalesce(sum(numbackends), 0)::int from pg_stat_database) as "connectionsTaken",
      (select count(*)::int from pg_stat_activity
        where datname = current_database() and application_name like 'klatch %' and pid <> pg_backend_pid())
        as "klatchConnections",
      (select count(*)::int from pg_stat_activity
        where datname = current_database() and xact_start < now() - ${longTransactionS} * interval '1 second'
          and application_name is distinct from ${`klatch ${BACKUP_SESSION_NAME}`})
        as "longTransactions",
      (select count(*)::int from waiting) as "waitingLocks",
      to_json(array(
        select distinct blocker from waiting, unnest(pg_blocking_pids(pid)) as blocker order by blocker limit 10
      )) as "blockerPids"`;
  return row!;
}

/**
 * How far the database's clock is ahead of the local clock, in ms. The server reads its clock between two readings of
 * the local clock: the middle of these is the best estimate of the local time at that moment.
 */
async function clockAheadMs(tx: Transaction): Promise<number> {
  const before = Date.now();
  const started = performance.now();
  const [row] = await tx<{ ms: number }[]>`select extract(epoch from clock_timestamp())::float8 * 1000 as ms`;
  return Math.round(row!.ms - (before + (performance.now() - started) / 2));
}
