import type { ConnectionTarget, Transaction } from './db/connection.ts';
import { BACKUP_SESSION_NAME } from './db/migrate.ts';
import { listMigrations } from './db/migration-files.ts';
import { readOnly } from './db/read-only.ts';
import { ServerGroup, type ServerUse } from './db/server-group.ts';
import { findSchemaMismatch, readAppliedMigrations, type SchemaMismatch } from './db/schema-compatibility.ts';
import { opensCanary, type Sealer } from './db/sealed.ts';
import { findStoreId } from './files/store-id.ts';
import { findLossRecord, type LossRecord } from './messages/loss-record.ts';

/** What a person who looks after the database wants to know; nothing in it is of users. */
export interface DatabaseReport {
  /** The servers that the configuration lists, with the one that was looked at. */
  readonly serverUses: readonly ServerUse[];
  /** "18.4". */
  readonly version: string;
  /** 180004. */
  readonly versionNumber: number;
  readonly encoding: string;
  /** True: it takes no writes (a standby, or `default_transaction_read_only`). */
  readonly readOnly: boolean;
  /** As they are for Klatch's sessions. */
  readonly fsync: string;
  readonly fullPageWrites: string;
  /** Connections that an ordinary user may have in all, and how many of the server's are taken. */
  readonly connections: number;
  readonly connectionsTaken: number;
  /** Of them those of a Klatch. */
  readonly klatchConnections: number;
  /** The schema's number; 0: no Klatch has worked on it yet. */
  readonly schema: number;
  /** Why this program cannot use that schema; null: it can. */
  readonly schemaMismatch: SchemaMismatch | null;
  /** Whether `secret` opens what is sealed in it; null: nothing is. */
  readonly secretFits: boolean | null;
  /** What `findStoreId` says; null also where there is no schema yet. */
  readonly storeId: string | null;
  /** When a node last found that this database lacks what had been committed; null: never. */
  readonly loss: LossRecord | null;
  /** By how much its clock is ahead of ours. */
  readonly clockAheadMs: number;
  /** Transactions that have been open for longer than {@link LONG_TRANSACTION_S}, of sessions that we may look at, backups left out. */
  readonly longTransactions: number;
  /** Locks that have not been granted, of this database; a lock that waits for a moment only is among them. */
  readonly waitingLocks: number;
  /** Processes of the sessions that hold them up, at most ten. */
  readonly blockerPids: readonly number[];
}

/** Old rows cannot be removed while a transaction that might see them is open. */
export const LONG_TRANSACTION_S = 300;

type ReportedColumns = Omit<
  DatabaseReport,
  'serverUses' | 'schema' | 'schemaMismatch' | 'secretFits' | 'storeId' | 'loss' | 'clockAheadMs'
>;

/**
 * Looks at a database over a connection of its own, in a transaction that can change nothing. Rejects with
 * DatabaseUnavailableError or CommitUnknownError, and with PostgreSQL's own error.
 */
export async function reportDatabase(
  target: ConnectionTarget,
  options: { sealer: Sealer; timeoutMs: number; longTransactionS?: number },
): Promise<DatabaseReport> {
  return readOnly(target, options.timeoutMs, async (tx) => {
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

/** The moment of the answer lies between the two looks at our own clock: half of the way each is the best guess. */
async function clockAheadMs(tx: Transaction): Promise<number> {
  const before = Date.now();
  const started = performance.now();
  const [row] = await tx<{ ms: number }[]>`select extract(epoch from clock_timestamp())::float8 * 1000 as ms`;
  return Math.round(row!.ms - (before + (performance.now() - started) / 2));
}
