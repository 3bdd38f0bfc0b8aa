import type { Sql } from '../db/connection.ts';
import { PARTITIONS } from './lanes.ts';

/** A partition that is ours, with the epoch that fences what we settle for it. */
export interface HeldPartition {
  readonly partition: number;
  readonly epoch: number;
}

/** Who may claim, how much, and for how long. */
interface PartitionClaim {
  readonly holder: string;
  readonly leaseMs: number;
  /** Partitions that the process knows to be its own. */
  readonly alreadyHeldPartitions?: readonly number[];
  /** Of those that are free, at most so many. */
  readonly maxClaimedPartitions?: number;
  /** The timeline that the claim is made in; 0, the default: unknown, so that it is taken for the one of the last claims. */
  readonly timeline?: number;
}

/**
 * How far an epoch rises with a new timeline: what was claimed last in the old one may be missing in it, and the epoch of
 * a settlement from then must not come back.
 */
const NEW_TIMELINE_EPOCHS = 1_000;

/**
 * Takes what was held by this identity before (a killed process's successor takes over at once), and up to `maxClaimedPartitions` in all
 * of what is free or expired. Each taken one gets a new epoch, which nobody has held, also not in another timeline.
 */
export async function claimPartitions(sql: Sql, claim: PartitionClaim): Promise<HeldPartition[]> {
  const { holder, leaseMs, alreadyHeldPartitions = [], maxClaimedPartitions = PARTITIONS, timeline = 0 } = claim;
  return sql<HeldPartition[]>`
    update lease set holder = ${holder},
      epoch = epoch + case when timeline <> nullif(${timeline}::int, 0) then ${NEW_TIMELINE_EPOCHS}::bigint else 1 end,
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
 * Prolongs what is still ours; a partition that is not in the answer belongs to somebody else now. The rows are locked
 * in order, as settlements lock them, so that the two cannot wait for each other.
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

/** Gives these back, where they are still ours; the next holder need not wait for their leases to end. */
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

/** Gives everything back that this identity holds. */
export async function releaseAllPartitions(sql: Sql, holder: string): Promise<void> {
  await sql`
    with ours as (select partition from lease where holder = ${holder} order by partition for no key update)
    update lease l set holder = null, expires_at = '-infinity' from ours where l.partition = ours.partition`;
}

/** Who may deliver for a partition right now, by the database's clock. */
export interface LeaseState {
  /** Null: nobody, so that whoever claims it later reads what is committed by now. */
  readonly holder: string | null;
  readonly epoch: number;
  /** Until the holder must have stopped, unless it renews; 0 without one. */
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

/** How long until the first lease of another node ends, if it is not renewed; null when no other has one that lasts. */
export async function nextPeerExpiryMs(sql: Sql, holder: string): Promise<number | null> {
  const [row] = await sql<{ ms: number | null }[]>`
    select ceil(extract(epoch from min(expires_at) - clock_timestamp()) * 1000)::bigint as ms
    from lease where holder <> ${holder} and expires_at > clock_timestamp()`;
  return row!.ms;
}
