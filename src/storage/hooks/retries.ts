import type { HookId, Rev, Seq } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';
import type { RetryRange } from './settlement.ts';

/** Rows that one hook may have; at this bound it reads on no further (the contract). */
export const MAX_RETRY_ROWS = 1_000;

/** A request that is repeated apart from the log's order. */
export interface RetryRangeWithAttempts extends RetryRange {
  readonly attempts: number;
}

/** What of a hook's requests is due, the longest due first, with how many there are and when the next one is. */
export interface DueRetries {
  readonly due: readonly RetryRangeWithAttempts[];
  readonly count: number;
  /** Of those that are not due yet. */
  readonly nextAt: Date | null;
}

/**
 * Reads at most `limit` requests that are due. A time further ahead than `maxPlausibleDelayMs` was set by a clock that has been put
 * back since: it is due as well.
 */
export async function readDueRetries(
  sql: Sql,
  hookId: HookId,
  bounds: { nowMs: number; maxPlausibleDelayMs: number; limit: number },
): Promise<DueRetries> {
  // Times are told in whole milliseconds: what is due within this one is due, or it would be asked for again and again.
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

/** A hook's requests that begin behind its cursors, in their order. */
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
 * Makes every request of a hook due: its target takes deliveries again. `now` is the clock of whoever is going to send
 * them, which may differ from the database's.
 */
export async function retryAllNow(sql: Sql, hookId: HookId, now: Date): Promise<void> {
  await sql`update delivery_retry set next_at = ${now} where hook_id = ${hookId} and next_at > ${now}`;
}
