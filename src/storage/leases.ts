import type { Sql } from './connection.ts';

/** A partition that is ours, with the epoch that fences what we settle for it. */
export interface HeldPartition {
  readonly partition: number;
  readonly epoch: number;
}

/**
 * Takes every partition that is free, expired, or was held by this identity before (a killed process's successor takes
 * over at once). Each taken one gets a new epoch.
 */
export async function claimPartitions(
  sql: Sql,
  holder: string,
  except: readonly number[],
  leaseMs: number,
): Promise<HeldPartition[]> {
  return sql<HeldPartition[]>`
    update lease set holder = ${holder}, epoch = epoch + 1,
      expires_at = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
    where partition in (
      select partition from lease
      where (holder is null or holder = ${holder} or expires_at < clock_timestamp())
        and not partition = any(${[...except]}::int[])
      order by partition for update skip locked)
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

/** Gives everything back, so that the next process need not wait for the leases to end. */
export async function releasePartitions(sql: Sql, holder: string): Promise<void> {
  await sql`
    with ours as (select partition from lease where holder = ${holder} order by partition for no key update)
    update lease l set holder = null, expires_at = '-infinity' from ours where l.partition = ours.partition`;
}
