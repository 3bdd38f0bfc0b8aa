import { hookState, type HookState } from '../../model/hook.ts';
import type { ConversationId, HookId } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';

/** A hook's last failed attempt, as the hook's row stores it. */
interface HookLastFailedAttempt {
  readonly hookId: HookId;
  readonly conversationId: ConversationId;
  /** The target's host, with its port unless it is the scheme's default; path and query never leave the database. */
  readonly host: string;
  readonly at: Date;
  readonly category: string | null;
  readonly code: number | null;
}

/** The state of the lanes of all processes, as the database knows it. */
export interface LaneReport {
  /** The number of registered hooks in each state. */
  readonly hooks: Readonly<Record<HookState, number>>;
  /** The number of registered hooks with pending deliveries, including paused hooks. */
  readonly pendingHooks: number;
  /** Time of the oldest pending message or change, of hooks that are not paused; null when there is none. */
  readonly oldestPendingAt: Date | null;
  /**
   * The last failed attempts, newest first, at most `MAX_REPORTED_ERRORS`: of registered hooks, and of hooks that a 410
   * of their target removed.
   */
  readonly errors: readonly HookLastFailedAttempt[];
}

const MAX_REPORTED_ERRORS = 5;
/**
 * The query looks up the age of the next message of at most this many lanes. The same bound holds for the first message
 * in retry rows.
 */
const AGE_LOOKUP_LIMIT = 5_000;

/**
 * The number of hooks in one state, and values from which `hookState` derives that state. Read from JSON, so times are
 * texts.
 */
interface HookStateGroup {
  readonly hooks: number;
  readonly pending: number;
  readonly paused_at: string | null;
  readonly failures: number;
  readonly failing_since: string | null;
}

interface LaneReportRow {
  readonly alike: readonly HookStateGroup[];
  /** The number of hooks that have nothing to deliver but retry rows. */
  readonly retryOnlyHooks: number;
  readonly oldestUnpausedPendingSentAt: Date | null;
  readonly errors: readonly { id: HookId; group: ConversationId; url: string; at: string; [rest: string]: unknown }[];
}

/**
 * Reads the state of all lanes at a moment, in one statement. The statement reads every hook twice and every head once,
 * and both once more if something is pending. With 100,000 hooks in as many groups it took 90 ms when all were idle. It
 * took 230 ms when all failed and had something pending (two cores, PostgreSQL 18). So only
 * `operations/core/delivery-report-cache.ts` calls it, and seldom. An index on the columns that each settlement changes
 * would cost every delivery more than it saves here.
 *
 * The statement looks up the age of the next message of at most 5,000 lanes with pending messages. It prefers lanes
 * whose next message must be old: the message was sent no later than the lane's first failure with it, and no later
 * than the group's newest message. With more than 5,000 such lanes the reported age can be too low. That happens for a
 * backlog in a busy group under a hook that does not fail, which is not a stuck lane.
 */
export async function readLaneReport(sql: Sql, nowMs: number, parkAfterMs: number): Promise<LaneReport> {
  const parkedSince = new Date(nowMs - parkAfterMs);
  // A fragment instead of a common table expression: PostgreSQL would materialise all rows of the latter, on disk when
  // there are many.
  const lanes = sql`reverse_hook r join conversation_head h on h.conversation_id = r.conversation_id`;
  const firstEvent = sql`
    select e.at from hook_event e
    where e.conversation_id = r.conversation_id and e.rev > r.event_cursor and e.seq >= h.first_seq
    order by e.rev limit 1`;
  const isPending = sql`(r.cursor < h.last_seq or r.event_cursor is not null and exists (${firstEvent}))`;
  const [row] = await sql<LaneReportRow[]>`
    with alike as (
      select count(*) as hooks, count(*) filter (where ${isPending}) as pending, max(r.paused_at) as paused_at,
        max(r.failures) as failures, max(r.failing_since) as failing_since
      from ${lanes} where r.removed_at is null
      group by r.paused_at is null, r.failures = 0, r.failing_since <= ${parkedSince}
    ), waiting as (
      select r.conversation_id, greatest(r.cursor + 1, h.first_seq) as next_seq from ${lanes}
      where r.removed_at is null and r.paused_at is null and r.cursor < h.last_seq
      order by least(r.failing_since, h.last_at) limit ${AGE_LOOKUP_LIMIT}
    ), apart as (
      -- seq is null if all retry rows of the hook are events.
      select r.conversation_id, case when d.seq is not null then greatest(d.seq, h.first_seq) end as seq, r.paused_at,
        not ${isPending} as otherwise_done
      from (select hook_id, min(seq) filter (where rev = 0) as seq from delivery_retry group by hook_id) d
        join reverse_hook r on r.id = d.hook_id join conversation_head h on h.conversation_id = r.conversation_id
      where r.removed_at is null order by d.hook_id limit ${AGE_LOOKUP_LIMIT}
    ), error as (
      select r.id, r.conversation_id as group, r.url, r.last_error_at as at, r.last_error_category as category,
        r.last_error_code as code
      from reverse_hook r
      where r.last_error_at is not null and (r.removed_at is null or r.removed_by = 'target')
      order by r.last_error_at desc limit ${MAX_REPORTED_ERRORS}
    )
    select (select coalesce(json_agg(alike), '[]') from alike) as alike,
      (select count(*) from apart where otherwise_done) as "retryOnlyHooks",
      least(
        case when exists (select from alike where pending > 0) then (
          select min((select m.sent_at from message m where m.conversation_id = w.conversation_id and m.seq = w.next_seq))
          from waiting w) end,
        (select min(x.at) from (
          select (${firstEvent}) as at from ${lanes}
          where r.events <> '{}' and r.removed_at is null and r.paused_at is null limit ${AGE_LOOKUP_LIMIT}) x),
        (select min((select m.sent_at from message m where m.conversation_id = a.conversation_id and m.seq = a.seq))
          from apart a where a.paused_at is null)) as "oldestUnpausedPendingSentAt",
      (select coalesce(json_agg(error order by at desc), '[]') from error) as errors`;
  const { alike, retryOnlyHooks, oldestUnpausedPendingSentAt, errors } = row!;
  return {
    hooks: countStates(alike, nowMs, parkAfterMs),
    pendingHooks: alike.reduce((sum, { pending }) => sum + pending, retryOnlyHooks),
    oldestPendingAt: oldestUnpausedPendingSentAt,
    errors: errors.map(({ id, group, url, at, category, code }) => ({
      hookId: id,
      conversationId: group,
      host: new URL(url).host,
      at: new Date(at),
      category: category as string | null,
      code: code as number | null,
    })),
  };
}

/**
 * Counts the hooks in each state. The SQL statement only groups hooks with equal values; `hookState` decides their
 * state.
 */
function countStates(alike: readonly HookStateGroup[], nowMs: number, parkAfterMs: number): Record<HookState, number> {
  const counts: Record<HookState, number> = { active: 0, failing: 0, parked: 0, paused: 0 };
  const date = (text: string | null): Date | null => (text === null ? null : new Date(text));
  for (const { hooks, failures, paused_at, failing_since } of alike) {
    const health = { failures, pausedAt: date(paused_at), failingSince: date(failing_since) };
    counts[hookState(health, nowMs, parkAfterMs)] += hooks;
  }
  return counts;
}
