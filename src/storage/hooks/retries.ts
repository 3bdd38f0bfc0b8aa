import type { HookId, Rev, Seq } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';
import type { RetryRange } from './settlement.ts';

/**
 * The maximum of retry rows of one hook. At this bound its lane reads no further messages (docs/reverse-webhooks.md).
 */
export const MAX_RETRY_ROWS = 1_000;

/** A retry row: a request that the lane retries outside the log's order. */
export interface RetryRangeWithAttempts extends RetryRange {
  readonly attempts: number;
}

/** A hook's retry rows that are due, those due for longest first, with the number of all its retry rows. */
export interface DueRetries {
  readonly due: readonly RetryRangeWithAttempts[];
  readonly count: number;
  /** The earliest time of the rows that are not due yet. */
  readonly nextAt: Date | null;
}

/**
 * Reads at most `limit` retry rows that are due. A time further ahead than `maxPlausibleDelayMs` comes from a clock
 * that was set back since: such a row is due as well.
 */
export async function readDueRetries(
  sql: Sql,
  hookId: HookId,
  bounds: { nowMs: number; maxPlausibleDelayMs: number; limit: number },
): Promise<DueRetries> {
  // The database returns times in whole milliseconds. A row whose time is in the current millisecond counts as due;
  // otherwise the lane would query it over and over.
  const now = new Date(bounds.nowMs + 1);
  const latest = new Date(bounds.nowMs + bounds.maxPlausibleDelayMs);
  const [row] = await sql<DueRetries[]>`
    select
      (select coalesce(json_agg(x), '[]') from (
        select seq, last_seq as "lastSeq", rev, last_rev as "lastRev", attempts from delivery_retry
        where hook_id = ${hookId} and (next_at < ${now} or next_at > ${latest})
        order by next_at, seq, rev limit ${bounds.limit}) x) as due,
      (select count(*)::int from delivery_retry where hook_id = ${hookId}) as count,
      (select min(next_at) from delivery_retry where hook_id = ${hookId} and next_at >= ${now} and next_at <= ${latest})
        as "nextAt"`;
  return row!;
}

/** Reads a hook's retry rows after its cursors, in the order of their seqs and revs. */
export async function retriesAfter(
  sql: Sql,
  hookId: HookId,
  { cursor, eventCursor }: { cursor: Seq; eventCursor: Rev | null },
): Promise<readonly RetryRangeWithAttempts[]> {
  return sql<RetryRangeWithAttempts[]>`
    select seq, last_seq as "lastSeq", rev, last_rev as "lastRev", attempts from delivery_retry
    where hook_id = ${hookId} and (seq > ${cursor} or rev > ${eventCursor ?? 0})
    order by seq, rev limit ${MAX_RETRY_ROWS * 2}`;
}

/**
 * Makes every retry row of a hook due, because its target accepts deliveries again. `now` is the clock of the node that
 * sends them; it may differ from the database's.
 */
export async function makeAllRetriesDue(sql: Sql, hookId: HookId, now: Date): Promise<void> {
  await sql`update delivery_retry set next_at = ${now} where hook_id = ${hookId} and next_at > ${now}`;
}
