import type { Sql } from '../db/connection.ts';
import { PARTITIONS } from './lanes.ts';

/** A partition that this node holds, with the epoch that fences its settlements. */
export interface HeldPartition {
  readonly partition: number;
  readonly epoch: number;
}

interface PartitionClaim {
  readonly holder: string;
  readonly leaseMs: number;
  /** Partitions that this process already holds. */
  readonly alreadyHeldPartitions?: readonly number[];
  /** The most partitions to claim in all; partitions that `holder` held before are claimed even beyond this number. */
  readonly maxClaimedPartitions?: number;
  /** The timeline of the claim. 0, the default, means unknown: the claim counts for the timeline of the last claims. */
  readonly timeline?: number;
}

/**
 * The first claim of a partition in a new timeline raises its epoch by this. The last claims of the old timeline may be
 * missing in the new one, and the epochs of their settlements must not recur.
 */
const NEW_TIMELINE_EPOCH_STEP = 1_000;

/**
 * Claims partitions that `holder` held before, so that a killed process's successor takes over at once. It also claims
 * free or expired partitions, up to `maxClaimedPartitions` in all. Each claimed partition gets a new epoch that no node
 * has held, not even in another timeline.
 */
export async function claimPartitions(sql: Sql, claim: PartitionClaim): Promise<HeldPartition[]> {
  const { holder, leaseMs, alreadyHeldPartitions = [], maxClaimedPartitions = PARTITIONS, timeline = 0 } = claim;
  return sql<HeldPartition[]>`
    update lease set holder = ${holder},
      epoch = epoch + case when timeline <> nullif(${timeline}::int, 0) then ${NEW_TIMELINE_EPOCH_STEP}::bigint else 1 end,
      timeline = coalesce(nullif(${timeline}::int, 0), timeline),
      expires_at = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
    where partition in (
      select partition from lease
      where (holder is null or holder = ${holder} or expires_at < clock_timestamp())
        and not partition = any(${[...alreadyHeldPartitions]}::int[])
      order by holder is not distinct from ${holder} desc, partition
      limit greatest(${maxClaimedPartitions}::bigint, (
        select count(*) from lease where holder = ${holder} and not partition = any(${[...alreadyHeldPartitions]}::int[])))
      for update skip locked)
    returning partition::int as partition, epoch`;
}

/**
 * Extends the leases that this node still holds, and returns their partitions. A partition that is missing in the
 * answer belongs to another node now. The statement locks rows in order, as settlements do, so that the two cannot
 * deadlock.
 */
export async function renewPartitions(
  sql: Sql,
  holder: string,
  held: readonly HeldPartition[],
  leaseMs: number,
): Promise<number[]> {
  const rows = await sql<{ partition: number }[]>`
    with ours as (
      select l.partition from lease l
      where l.holder = ${holder} and (l.partition::int, l.epoch) in (
        select * from unnest(${held.map((h) => h.partition)}::int[], ${held.map((h) => h.epoch)}::bigint[]))
      order by l.partition for no key update
    )
    update lease l set expires_at = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
    from ours where l.partition = ours.partition
    returning l.partition::int as partition`;
  return rows.map((row) => row.partition);
}

/**
 * Releases these partitions where this node still holds them; the next holder need not wait until their leases expire.
 */
export async function releasePartitions(sql: Sql, holder: string, held: readonly HeldPartition[]): Promise<void> {
  await sql`
    with ours as (
      select l.partition from lease l
      where l.holder = ${holder} and (l.partition::int, l.epoch) in (
        select * from unnest(${held.map((h) => h.partition)}::int[], ${held.map((h) => h.epoch)}::bigint[]))
      order by l.partition for no key update
    )
    update lease l set holder = null, expires_at = '-infinity' from ours where l.partition = ours.partition`;
}

/** Releases all partitions that `holder` holds. */
export async function releaseAllPartitions(sql: Sql, holder: string): Promise<void> {
  await sql`
    with ours as (select partition from lease where holder = ${holder} order by partition for no key update)
    update lease l set holder = null, expires_at = '-infinity' from ours where l.partition = ours.partition`;
}

/** The holder of a partition right now, by the database's clock. */
export interface LeaseState {
  /** Null: nobody. A node that claims the partition later reads everything that is committed by now. */
  readonly holder: string | null;
  readonly epoch: number;
  /** The time until the holder must have stopped delivering, unless it renews the lease; 0 if nobody holds it. */
  readonly remainingMs: number;
}

export async function findLease(sql: Sql, partition: number): Promise<LeaseState> {
  const [row] = await sql<LeaseState[]>`
    select case when expires_at > clock_timestamp() then holder end as holder, epoch,
      case when holder is not null and expires_at > clock_timestamp()
        then ceil(extract(epoch from expires_at - clock_timestamp()) * 1000)::bigint else 0 end as "remainingMs"
    from lease where partition = ${partition}`;
  return row!;
}

/**
 * Time until the first lease of another node expires if it is not renewed; null when no other node has a valid lease.
 */
export async function findMsUntilPeerExpiry(sql: Sql, holder: string): Promise<number | null> {
  const [row] = await sql<{ ms: number | null }[]>`
    select ceil(extract(epoch from min(expires_at) - clock_timestamp()) * 1000)::bigint as ms
    from lease where holder <> ${holder} and expires_at > clock_timestamp()`;
  return row!.ms;
}
