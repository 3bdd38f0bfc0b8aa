import type { ConversationId, HookId } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';
import type { Pool } from '../db/pool.ts';
import type { HookReference } from '../hooks/hook-control.ts';
import { countTotalRequestsPerHook } from '../hooks/hook-stats.ts';

/** One statement examines at most this many hooks, each with some thousand rows of counts. */
const HOOKS_PER_QUERY = 500;
/** One statement deletes about this many rows. */
export const PAGE_ROWS = 5_000;
/**
 * A round deletes at most this many pages for one hook. They hold the rows of a quarter of an hour with 4,000
 * deliveries a second to this hook alone.
 */
export const MAX_PAGES_PER_HOOK = 720;
const STATEMENT_TIMEOUT_MS = 60_000;
/** A round skips a hook that had no request for this long, since an earlier round has already examined it. */
const ACTIVE_WITHIN_MS = 24 * 60 * 60_000;

interface TrimmingOptions {
  /** The number of rows that each hook keeps: the newest ones. */
  readonly keep: number;
  readonly nowMs: number;
  /** Called before each statement, which waits for its promise; a rejection aborts the round. */
  readonly beforeStep: () => Promise<void>;
}

/**
 * Deletes all rows of the delivery log except the newest `keep` of each hook. The counts of requests in `hook_stats`
 * tell which hooks may have more rows, and an index leads to their rows. So the reads grow with the deleted rows, not
 * with the log.
 */
export async function trimAttemptsPerHook(pool: Pool, trimming: TrimmingOptions): Promise<number> {
  const zeroIfIdleSince = new Date(trimming.nowMs - ACTIVE_WITHIN_MS);
  let after: HookReference = { conversationId: 0 as ConversationId, hookId: 0 as HookId };
  let totalDeleted = 0;
  for (;;) {
    await trimming.beforeStep();
    const page = { after, zeroIfIdleSince, limit: HOOKS_PER_QUERY };
    const hooks = await pool.run((sql) => countTotalRequestsPerHook(sql, page), STATEMENT_TIMEOUT_MS);
    for (const hook of hooks)
      if (hook.requests > trimming.keep) totalDeleted += await trimHook(pool, hook.hookId, trimming);
    if (hooks.length < HOOKS_PER_QUERY) return totalDeleted;
    after = hooks.at(-1)!;
  }
}

async function trimHook(pool: Pool, hookId: HookId, { keep, beforeStep }: TrimmingOptions): Promise<number> {
  await beforeStep();
  const before = await pool.run((sql) => findOldestKept(sql, hookId, keep), STATEMENT_TIMEOUT_MS);
  if (before === null) return 0;
  let totalDeleted = 0;
  let from = '-infinity';
  for (let pages = 0; pages < MAX_PAGES_PER_HOOK; pages += 1) {
    await beforeStep();
    const range = { from, before };
    const { count, last } = await pool.run((sql) => deletePage(sql, hookId, range), STATEMENT_TIMEOUT_MS);
    totalDeleted += count;
    if (count < PAGE_ROWS) break;
    from = last!;
  }
  return totalDeleted;
}

/** The time of the oldest row that a hook keeps, as text: a Date has no microseconds. */
async function findOldestKept(sql: Sql, hookId: HookId, keep: number): Promise<string | null> {
  const [row] = await sql<{ at: string }[]>`
    select at::text as at from delivery_attempt where hook_id = ${hookId} order by at desc offset ${keep - 1} limit 1`;
  return row?.at ?? null;
}

/**
 * Deletes a page of a hook's oldest rows. Each page starts where the previous one ended, or it would step over the rows
 * that the previous pages deleted.
 */
async function deletePage(
  sql: Sql,
  hookId: HookId,
  { from, before }: { from: string; before: string },
): Promise<{ count: number; last: string | null }> {
  const [row] = await sql<{ count: number; last: string | null }[]>`
    with page as (
      select at from delivery_attempt
      where hook_id = ${hookId} and at >= ${from}::text::timestamptz and at < ${before}::text::timestamptz
      order by at limit ${PAGE_ROWS}
    ), gone as (
      delete from delivery_attempt
      where hook_id = ${hookId} and at >= ${from}::text::timestamptz and at <= (select max(at) from page)
      returning at
    )
    select count(*) as count, max(at)::text as last from gone`;
  return row!;
}
