import { DURATION_BOUNDS_MS } from '../../model/hook-stats.ts';
import type { Fragment, Sql } from '../db/connection.ts';
import type { HookId } from '../../model/ids.ts';
import type { HookReference } from './hook-control.ts';

const FIVE_MINUTES_S = 300;

/** The end of the insert into the delivery log. It returns to `addToHookStats` the rows that did not exist before. */
export const returnNewlyLogged = (sql: Sql): Fragment =>
  sql`on conflict do nothing returning conversation_id, hook_id, at, outcome, duration_ms`;

/**
 * Adds the requests that a settlement's CTE `logged` newly inserted to the counts of their hooks. So a settlement that
 * is written twice counts nothing twice. The insert goes in the order of hooks, since two nodes can count for one hook
 * during a hand-over. Rows without a request, such as `dead_lettered`, do not count.
 */
export const addToHookStats = (sql: Sql): Fragment => sql`
  request as (
    select conversation_id, hook_id, outcome,
      to_timestamp(floor(extract(epoch from at) / ${FIVE_MINUTES_S}::int) * ${FIVE_MINUTES_S}::int) as five_minutes,
      width_bucket(duration_ms, ${[...DURATION_BOUNDS_MS]}::int[]) as d
    from logged where outcome in ('delivered', 'failed')
  ), counted as (
    insert into hook_stats as s (conversation_id, hook_id, five_minutes, delivered, failed, durations)
    select conversation_id, hook_id, five_minutes, count(*) filter (where outcome = 'delivered'),
      count(*) filter (where outcome = 'failed'), array[
        count(*) filter (where d = 0), count(*) filter (where d = 1), count(*) filter (where d = 2),
        count(*) filter (where d = 3), count(*) filter (where d = 4), count(*) filter (where d = 5),
        count(*) filter (where d = 6), count(*) filter (where d = 7), count(*) filter (where d = 8),
        count(*) filter (where d = 9), count(*) filter (where d = 10), count(*) filter (where d = 11)]::int[]
    from request group by conversation_id, hook_id, five_minutes order by hook_id, five_minutes
    on conflict (conversation_id, hook_id, five_minutes) do update
    set delivered = s.delivered + excluded.delivered, failed = s.failed + excluded.failed, durations = array[
        s.durations[1] + excluded.durations[1], s.durations[2] + excluded.durations[2],
        s.durations[3] + excluded.durations[3], s.durations[4] + excluded.durations[4],
        s.durations[5] + excluded.durations[5], s.durations[6] + excluded.durations[6],
        s.durations[7] + excluded.durations[7], s.durations[8] + excluded.durations[8],
        s.durations[9] + excluded.durations[9], s.durations[10] + excluded.durations[10],
        s.durations[11] + excluded.durations[11], s.durations[12] + excluded.durations[12]]
  )`;

/** The numbers of requests to a hook from this row's time until the next row's. */
interface HookStatsRow {
  readonly at: Date;
  readonly delivered: number;
  readonly failed: number;
  /** One count for each bucket of `DURATION_BOUNDS_MS`. */
  readonly durations: readonly number[];
}

/** A hook's counts since a moment, in steps of `stepS` seconds; steps without a request are left out. */
export async function readHookStats(
  sql: Sql,
  { conversationId, hookId }: HookReference,
  { since, stepS }: { since: Date; stepS: number },
): Promise<HookStatsRow[]> {
  return sql<HookStatsRow[]>`
    select to_timestamp(floor(extract(epoch from five_minutes) / ${stepS}::int) * ${stepS}::int) as at,
      sum(delivered) as delivered, sum(failed) as failed, json_build_array(
        sum(durations[1]), sum(durations[2]), sum(durations[3]), sum(durations[4]), sum(durations[5]),
        sum(durations[6]), sum(durations[7]), sum(durations[8]), sum(durations[9]), sum(durations[10]),
        sum(durations[11]), sum(durations[12])) as durations
    from hook_stats
    where conversation_id = ${conversationId} and hook_id = ${hookId} and five_minutes >= ${since}
    group by 1 order by 1`;
}

/** The requests to a hook in an hour that begins at this moment. */
interface HourlyRequests {
  readonly hookId: HookId;
  readonly at: Date;
  readonly delivered: number;
  readonly failed: number;
}

/** The requests to some hooks since a moment, by hour and in the order of time; hours without a request are left out. */
export async function readHourlyRequests(
  sql: Sql,
  hooks: readonly HookReference[],
  since: Date,
): Promise<HourlyRequests[]> {
  return sql<HourlyRequests[]>`
    select h.hook_id as "hookId", date_trunc('hour', s.five_minutes, 'UTC') as at,
      sum(s.delivered) as delivered, sum(s.failed) as failed
    from unnest(${hooks.map(({ conversationId }) => conversationId)}::bigint[],
        ${hooks.map(({ hookId }) => hookId)}::bigint[]) as h (conversation_id, hook_id)
      -- The offset makes PostgreSQL read the counts of each hook by their key, and not those of all hooks since then.
      cross join lateral (
        select five_minutes, delivered, failed from hook_stats
        where conversation_id = h.conversation_id and hook_id = h.hook_id and five_minutes >= ${since} offset 0) s
    group by 1, 2 order by 1, 2`;
}

/** A hook, and the number of requests from which retention tells whether its delivery log may have too many rows. */
interface HookWithRequestCount extends HookReference {
  /** The number of requests to the hook that `hook_stats` still counts. */
  readonly requests: number;
}

/**
 * The next hooks after `after` that have counts, each with its number of requests; 0 for a hook without a request since
 * `zeroIfIdleSince`. The query goes from one hook to the next by the index; it scans neither the counts of all hooks
 * nor the delivery log.
 */
export async function countTotalRequestsPerHook(
  sql: Sql,
  page: { after: HookReference; zeroIfIdleSince: Date; limit: number },
): Promise<HookWithRequestCount[]> {
  const { after, zeroIfIdleSince, limit } = page;
  return sql<HookWithRequestCount[]>`
    with recursive hook (conversation_id, hook_id) as (
      (select s.conversation_id, s.hook_id from hook_stats s
      where (s.conversation_id, s.hook_id) > (${after.conversationId}, ${after.hookId})
      order by s.conversation_id, s.hook_id limit 1)
      union all
      select n.conversation_id, n.hook_id from hook h cross join lateral (
        select s.conversation_id, s.hook_id from hook_stats s
        where (s.conversation_id, s.hook_id) > (h.conversation_id, h.hook_id)
        order by s.conversation_id, s.hook_id limit 1
      ) n
    )
    select h.conversation_id as "conversationId", h.hook_id as "hookId", case when exists (
        select from hook_stats s
        where s.conversation_id = h.conversation_id and s.hook_id = h.hook_id and s.five_minutes >= ${zeroIfIdleSince}
      ) then (
        select sum(s.delivered + s.failed) from hook_stats s
        where s.conversation_id = h.conversation_id and s.hook_id = h.hook_id
      ) else 0 end as requests
    from hook h limit ${limit}`;
}

/** Deletes at most `limit` rows that are older than `before`. */
export async function deleteOldHookStats(sql: Sql, before: Date, limit: number): Promise<number> {
  const rows = await sql`
    delete from hook_stats where ctid = any(array(
      select ctid from hook_stats where five_minutes < ${before} order by five_minutes limit ${limit})) returning 1`;
  return rows.length;
}
