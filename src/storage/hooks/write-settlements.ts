import type { HookId } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';
import { addToHookStats, returnNewlyLogged } from './hook-stats.ts';
import { PARTITIONS } from './lanes.ts';
import {
  unpackNumbers,
  type AttemptColumns,
  type LaneColumns,
  type PackedSettlements,
  type FailureColumns,
} from './settlement-columns.ts';

/**
 * Writes settlements of any number of lanes, at most one for each lane, in one commit. Returns the hooks whose
 * settlement was written in full. A hook that is missing in the answer was changed (generation), was removed, or
 * belongs to another process (epoch), and its lane must read the hook again.
 * - If the hook was only changed, the settlement's position still counts, so that pausing a hook repeats nothing and a
 *   failed batch keeps its range.
 * - If its cursor was moved as well (`cursor_generation`), or another process holds the lease, only the attempts are
 *   logged and counted: they were made.
 *
 * The lease rows stay share-locked until the commit, so that no other process takes over between the check and the
 * write.
 */
export async function writeSettlements(sql: Sql, packed: PackedSettlements): Promise<HookId[]> {
  const columns = unpackNumbers(packed);
  const { failureColumns } = packed;
  const rows = await (failureColumns === null
    ? settleDelivered(sql, columns)
    : settleWithFailures(sql, { ...columns, failureColumns }));
  return rows.filter((row) => row.current).map((row) => row.id);
}

interface BaseColumns {
  readonly lanes: LaneColumns;
  readonly attempts: AttemptColumns;
}

interface ColumnsWithFailures extends BaseColumns {
  readonly failureColumns: FailureColumns;
}

interface HookSettleResult {
  readonly id: HookId;
  /** False: the hook was changed after its lane read it, so the settlement wrote only the position. */
  readonly current: boolean;
}

/** The lease rows of the settled hooks, under a lock that lasts until the commit. */
const selectLeasesForShare = (sql: Sql) => sql`
  select l.partition, l.epoch from lease l where l.partition in (select hook_id % ${PARTITIONS} from input)
  order by l.partition for share`;

/**
 * The end of the update of hooks: selects those that take a settlement, in whole or in part. This node still holds
 * their lease, and no other write moved their cursor.
 */
const fromInputWithHeldLease = (sql: Sql) => sql`
  from input i join fence f on f.partition = i.hook_id % ${PARTITIONS} and f.epoch = i.epoch
  where r.id = i.hook_id and r.generation >= i.generation and r.cursor_generation <= i.generation
    and r.removed_at is null
  returning r.id, r.conversation_id, i.generation, r.generation = i.generation as current,
    r.event_cursor is not null as wants_events`;

/**
 * Writes settlements in which all messages were delivered, which nearly all are. They need only half of the columns.
 */
function settleDelivered(sql: Sql, { lanes, attempts }: BaseColumns): Promise<HookSettleResult[]> {
  return sql<HookSettleResult[]>`
    with input as (
      select * from unnest(
        ${lanes.hookId}::bigint[], ${lanes.generation}::bigint[], ${lanes.epoch}::bigint[], ${lanes.cursor}::bigint[],
        ${lanes.successMs}::bigint[]
      ) as u(hook_id, generation, epoch, cursor, success_ms)
    ), fence as (${selectLeasesForShare(sql)}
    ), settled as (
      update reverse_hook r
      set cursor = greatest(r.cursor, i.cursor),
        failures = case when r.generation = i.generation then 0 else r.failures end,
        failing_since = case when r.generation = i.generation then null else r.failing_since end,
        parked_at = case when r.generation = i.generation then null else r.parked_at end,
        next_attempt_at = case when r.generation = i.generation then null else r.next_attempt_at end,
        rejections = 0, batch_last_seq = null, unbatched_until = null,
        last_success_at = coalesce(to_timestamp(i.success_ms / 1000.0), r.last_success_at)
      ${fromInputWithHeldLease(sql)}
    ), logged as (
      insert into delivery_attempt (conversation_id, hook_id, seq, last_seq, attempt, at, outcome, code, duration_ms)
      select r.conversation_id, a.hook_id, a.seq, a.last_seq, a.attempt, to_timestamp(a.at_ms / 1000.0), 'delivered', a.code, a.duration_ms
      from unnest(
        ${attempts.hookId}::bigint[], ${attempts.firstSeq}::bigint[], ${attempts.lastSeq}::bigint[],
        ${attempts.attempt}::int[], ${attempts.atMs}::bigint[], ${attempts.code}::int[], ${attempts.durationMs}::int[]
      ) as a(hook_id, seq, last_seq, attempt, at_ms, code, duration_ms)
      join reverse_hook r on r.id = a.hook_id
      ${returnNewlyLogged(sql)}
    ), ${addToHookStats(sql)}
    select id, current from settled`;
}

/** Writes the retry rows of the hooks in `settled`, and deletes the rows whose requests have ended. */
const writeRetries = (sql: Sql, retries: FailureColumns['retries']) => sql`
  retry as (
    select s.conversation_id, s.generation, u.* from unnest(
      ${retries.hookId}::bigint[], ${retries.seq}::bigint[], ${retries.lastSeq}::bigint[], ${retries.attempts}::int[],
      ${retries.nextAt}::timestamptz[], ${retries.rev}::bigint[], ${retries.lastRev}::bigint[]
    ) as u(hook_id, seq, last_seq, attempts, next_at, rev, last_rev)
    -- The row as it is after the wait for its lock: a hook that no longer asks for events gets no retry of an event.
    join settled s on s.id = u.hook_id and (u.rev = 0 or s.wants_events)
  ), over as (
    delete from delivery_retry d using retry
    where d.hook_id = retry.hook_id and d.seq = retry.seq and d.rev = retry.rev and d.last_seq <= retry.last_seq
      and d.last_rev <= retry.last_rev and d.generation <= retry.generation and retry.next_at is null
  ), again as (
    insert into delivery_retry (conversation_id, hook_id, seq, last_seq, rev, last_rev, attempts, next_at)
    select conversation_id, hook_id, seq, last_seq, rev, last_rev, attempts, next_at from retry where next_at is not null
    on conflict on constraint delivery_retry_pkey
    do update set attempts = excluded.attempts, next_at = excluded.next_at,
      last_seq = case when excluded.attempts = 0 then excluded.last_seq
        else greatest(delivery_retry.last_seq, excluded.last_seq) end,
      last_rev = case when excluded.attempts = 0 then excluded.last_rev
        else greatest(delivery_retry.last_rev, excluded.last_rev) end
  )`;

function settleWithFailures(
  sql: Sql,
  { lanes, attempts, failureColumns }: ColumnsWithFailures,
): Promise<HookSettleResult[]> {
  return sql<HookSettleResult[]>`
    with input as (
      select * from unnest(
        ${lanes.hookId}::bigint[], ${lanes.generation}::bigint[], ${lanes.epoch}::bigint[], ${lanes.cursor}::bigint[],
        ${lanes.successMs}::bigint[], ${failureColumns.failures}::int[], ${failureColumns.failingSince}::timestamptz[],
        ${failureColumns.nextAttemptAt}::timestamptz[], ${failureColumns.rejections}::int[], ${failureColumns.batchLastSeq}::bigint[],
        ${failureColumns.unbatchedUntil}::bigint[], ${failureColumns.errorMs}::bigint[], ${failureColumns.errorCategory}::text[],
        ${failureColumns.errorCode}::int[], ${failureColumns.eventCursor}::bigint[], ${failureColumns.batchLastRev}::bigint[],
        ${failureColumns.unbatchedUntilRev}::bigint[]
      ) as u(hook_id, generation, epoch, cursor, success_ms, failures, failing_since, next_attempt_at, rejections,
        batch_last_seq, unbatched_until, error_ms, category, code, event_cursor, batch_last_rev, unbatched_until_rev)
    ), fence as (${selectLeasesForShare(sql)}
    ), settled as (
      update reverse_hook r
      set cursor = greatest(r.cursor, i.cursor),
        failures = case when r.generation = i.generation then i.failures else r.failures end,
        failing_since = case when r.generation = i.generation then i.failing_since else r.failing_since end,
        parked_at = case when r.generation = i.generation and i.failures = 0 then null else r.parked_at end,
        next_attempt_at = case when r.generation = i.generation then i.next_attempt_at else r.next_attempt_at end,
        rejections = case when r.generation = i.generation then i.rejections
          when i.cursor > r.cursor or i.event_cursor > r.event_cursor then 0 else r.rejections end,
        batch_last_seq = i.batch_last_seq, unbatched_until = i.unbatched_until,
        -- A hook that no longer asks for events has no event cursor.
        event_cursor = case when r.event_cursor is not null then greatest(r.event_cursor, i.event_cursor) end,
        batch_last_rev = case when r.event_cursor is not null then i.batch_last_rev end,
        unbatched_until_rev = case when r.event_cursor is not null then i.unbatched_until_rev end,
        last_success_at = coalesce(to_timestamp(i.success_ms / 1000.0), r.last_success_at),
        last_error_at = coalesce(to_timestamp(i.error_ms / 1000.0), r.last_error_at),
        last_error_category = case when i.error_ms is null then r.last_error_category else i.category end,
        last_error_code = case when i.error_ms is null then r.last_error_code else i.code end
      ${fromInputWithHeldLease(sql)}
    ), ${writeRetries(sql, failureColumns.retries)}, logged as (
      insert into delivery_attempt
        (conversation_id, hook_id, seq, last_seq, attempt, at, outcome, category, code, duration_ms, rev, last_rev)
      select r.conversation_id, a.hook_id, a.seq, a.last_seq, a.attempt, to_timestamp(a.at_ms / 1000.0), a.outcome,
        a.category, a.code, a.duration_ms, a.rev, a.last_rev
      from unnest(
        ${attempts.hookId}::bigint[], ${attempts.firstSeq}::bigint[], ${attempts.lastSeq}::bigint[],
        ${attempts.attempt}::int[], ${attempts.atMs}::bigint[], ${failureColumns.outcome}::text[],
        ${failureColumns.category}::text[], ${attempts.code}::int[], ${attempts.durationMs}::int[],
        ${failureColumns.rev}::bigint[], ${failureColumns.lastRev}::bigint[]
      ) as a(hook_id, seq, last_seq, attempt, at_ms, outcome, category, code, duration_ms, rev, last_rev)
      join reverse_hook r on r.id = a.hook_id
      ${returnNewlyLogged(sql)}
    ), ${addToHookStats(sql)}
    select id, current from settled`;
}
