import type { ConnectionTarget, ServerAddress } from './db/connection-target.ts';
import { withReadOnlyTransaction } from './db/read-only.ts';

/** How far a standby is behind its primary. */
export interface ReplicationLag {
  /** The bytes of the write-ahead log that the standby lacks. */
  readonly bytes: number;
  readonly seconds: number;
}

/** The replication state of a primary. */
export interface ReplicationReport {
  /** The number of standbys that follow the primary right now, including a running base backup. */
  readonly standbys: number;
  /** PostgreSQL's setting; empty: no commit waits for a standby. */
  readonly synchronousStandbyNames: string;
  /** The lag of the standby that is least behind; null: no standby, or none that Klatch may see. */
  readonly leastLag: ReplicationLag | null;
}

/**
 * Examines the replication of a primary; null where the server is a standby. PostgreSQL shows a standby's lag only to
 * roles with `pg_read_all_stats`; for other roles Klatch queries the servers in `target` directly.
 */
export async function reportReplication(
  target: ConnectionTarget,
  timeoutMs: number,
): Promise<ReplicationReport | null> {
  const primary = await withReadOnlyTransaction(target, timeoutMs, async (tx) => {
    const [row] = await tx<PrimaryRow[]>`
      select pg_is_in_recovery() as "isStandby", current_setting('synchronous_standby_names') as names,
        case when not pg_is_in_recovery() then pg_current_wal_lsn()::text end as lsn,
        (select count(*)::int from pg_stat_replication) as standbys`;
    return row!;
  });
  if (primary.isStandby) return null;
  const { standbys, names: synchronousStandbyNames } = primary;
  if (standbys === 0) return { standbys, synchronousStandbyNames, leastLag: null };
  const leastLag = (await readLeastLag(target, timeoutMs)) ?? (await askStandbys(target, primary.lsn!, timeoutMs));
  return { standbys, synchronousStandbyNames, leastLag };
}

interface PrimaryRow {
  readonly isStandby: boolean;
  readonly names: string;
  readonly lsn: string | null;
  readonly standbys: number;
}

/**
 * The least lag as the primary reports it; null where it reports none. PostgreSQL still reports the last delay of a
 * standby for a while after the standby has caught up.
 */
async function readLeastLag(target: ConnectionTarget, timeoutMs: number): Promise<ReplicationLag | null> {
  return withReadOnlyTransaction(target, timeoutMs, async (tx) => {
    const [row] = await tx<ReplicationLag[]>`
      with standby as (
        select greatest(0, pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn))::float8 as bytes, flush_lag
        from pg_stat_replication where flush_lsn is not null and not pg_is_in_recovery()
      )
      select bytes, case when bytes = 0 then 0 else coalesce(extract(epoch from flush_lag), 0)::float8 end as seconds
      from standby order by bytes limit 1`;
    return row ?? null;
  });
}

/**
 * The least lag as the standbys report it, behind the primary's log position `lsn`; null where none of them answers.
 */
async function askStandbys(target: ConnectionTarget, lsn: string, timeoutMs: number): Promise<ReplicationLag | null> {
  const { host, port, otherHosts = [], ...login } = target;
  if (otherHosts.length === 0) return null;
  const servers = [{ host, port }, ...otherHosts];
  const lags = await Promise.all(
    servers.map((server) => askStandby({ ...login, ...server }, lsn, timeoutMs).catch(() => null)),
  );
  const known = lags.flatMap((lag) => lag ?? []);
  return known.toSorted((a, b) => a.bytes - b.bytes)[0] ?? null;
}

/** The lag of one server behind the log position `lsn`; null if the server is a primary. */
function askStandby(
  server: Omit<ConnectionTarget, 'otherHosts'> & ServerAddress,
  lsn: string,
  timeoutMs: number,
): Promise<ReplicationLag | null> {
  return withReadOnlyTransaction(server, timeoutMs, async (tx) => {
    const [row] = await tx<(ReplicationLag & { isStandby: boolean })[]>`
      with received as (
        select greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) as lsn, pg_is_in_recovery() as standby
      ), lag as (
        select greatest(0, pg_wal_lsn_diff(${lsn}::text::pg_lsn, lsn))::float8 as bytes, standby from received
      )
      select standby as "isStandby", coalesce(bytes, 0) as bytes,
        case when bytes = 0 then 0
          else coalesce(extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp()), 0)
        end::float8 as seconds
      from lag`;
    return row!.isStandby ? { bytes: row!.bytes, seconds: row!.seconds } : null;
  });
}
