import type { ConversationId, HookId, Seq } from '../model/ids.ts';
import type { Sql, Transaction } from './connection.ts';
import { PARTITIONS } from './lanes.ts';

/** The delivery log's row of one attempt. */
export interface AttemptRecord {
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  /** 1 for the first attempt of this message, counting on with each repeat. */
  readonly attempt: number;
  readonly at: Date;
  readonly delivered: boolean;
  readonly category: string | null;
  readonly code: number | null;
  readonly durationMs: number;
}

/** What became of a lane's attempts: absolute values, so that writing it twice is writing it once. */
export interface Settlement {
  readonly hookId: HookId;
  readonly generation: number;
  readonly epoch: number;
  readonly cursor: Seq;
  readonly failures: number;
  readonly failingSince: Date | null;
  readonly nextAttemptAt: Date | null;
  /** In the order in which they were made; none where every message was to be left out. */
  readonly attempts: readonly AttemptRecord[];
}

/**
 * Writes settlements of any number of lanes, one for each lane at most, in one commit. Returns the hooks that took
 * theirs: one that is missing was changed by somebody (generation), removed, or belongs to another process (epoch), and
 * its lane must be read again. The lease rows stay share-locked until the commit, so that no take-over slips between
 * the check and the write.
 */
export async function settle(sql: Sql, settlements: readonly Settlement[]): Promise<Set<HookId>> {
  const isPlain = settlements.every((s) => s.failures === 0 && s.attempts.every((attempt) => attempt.delivered));
  const rows = isPlain ? await settleDelivered(sql, settlements) : await settleAny(sql, settlements);
  return new Set(rows.map((row) => row.id));
}

/** Where everything was delivered, which is nearly always, half of the columns have nothing to say. */
function settleDelivered(sql: Sql, settlements: readonly Settlement[]): Promise<Settled[]> {
  const attempts = new AttemptColumns(settlements);
  return sql<Settled[]>`
    with input as (
      select * from unnest(
        ${settlements.map((s) => s.hookId)}::int[], ${settlements.map((s) => s.generation)}::bigint[],
        ${settlements.map((s) => s.epoch)}::bigint[], ${settlements.map((s) => s.cursor)}::bigint[],
        ${settlements.map((s) => s.attempts.at(-1)?.at.getTime() ?? null)}::bigint[]
      ) as u(hook_id, generation, epoch, cursor, success_ms)
    ), fence as (
      select l.partition, l.epoch from lease l where l.partition in (select hook_id % ${PARTITIONS} from input)
      order by l.partition for share
    ), settled as (
      update reverse_hook r
      set cursor = greatest(r.cursor, i.cursor), failures = 0, failing_since = null, next_attempt_at = null,
        last_success_at = coalesce(to_timestamp(i.success_ms / 1000.0), r.last_success_at)
      from input i join fence f on f.partition = i.hook_id % ${PARTITIONS} and f.epoch = i.epoch
      where r.id = i.hook_id and r.generation = i.generation and r.removed_at is null
      returning r.id
    ), logged as (
      insert into delivery_attempt (hook_id, seq, last_seq, attempt, at, outcome, code, duration_ms)
      select a.hook_id, a.seq, a.last_seq, a.attempt, to_timestamp(a.at_ms / 1000.0), 'delivered', a.code, a.duration_ms
      from unnest(
        ${attempts.hookId}::int[], ${attempts.firstSeq}::bigint[], ${attempts.lastSeq}::bigint[],
        ${attempts.attempt}::int[], ${attempts.atMs}::bigint[], ${attempts.code}::int[], ${attempts.durationMs}::int[]
      ) as a(hook_id, seq, last_seq, attempt, at_ms, code, duration_ms)
      on conflict do nothing
    )
    select id from settled`;
}

interface Settled {
  readonly id: HookId;
}

/** The attempts of all settlements as columns, in one pass: there may be thousands of them a second. */
class AttemptColumns {
  readonly hookId: HookId[] = [];
  readonly firstSeq: Seq[] = [];
  readonly lastSeq: Seq[] = [];
  readonly attempt: number[] = [];
  readonly atMs: number[] = [];
  readonly outcome: string[] = [];
  readonly category: (string | null)[] = [];
  readonly code: (number | null)[] = [];
  readonly durationMs: number[] = [];

  constructor(settlements: readonly Settlement[]) {
    for (const { hookId, attempts } of settlements) for (const attempt of attempts) this.#add(hookId, attempt);
  }

  #add(hookId: HookId, record: AttemptRecord): void {
    this.hookId.push(hookId);
    this.firstSeq.push(record.firstSeq);
    this.lastSeq.push(record.lastSeq);
    this.attempt.push(record.attempt);
    this.atMs.push(record.at.getTime());
    this.outcome.push(record.delivered ? 'delivered' : 'failed');
    this.category.push(record.category);
    this.code.push(record.code);
    this.durationMs.push(record.durationMs);
  }
}

function settleAny(sql: Sql, settlements: readonly Settlement[]): Promise<Settled[]> {
  const attempts = new AttemptColumns(settlements);
  const successes = settlements.map((s) => s.attempts.findLast((attempt) => attempt.delivered));
  const errors = settlements.map((s) => s.attempts.findLast((attempt) => !attempt.delivered));
  const iso = (date: Date | null | undefined): string | null => date?.toISOString() ?? null;
  return sql<Settled[]>`
    with input as (
      select * from unnest(
        ${settlements.map((s) => s.hookId)}::int[], ${settlements.map((s) => s.generation)}::bigint[],
        ${settlements.map((s) => s.epoch)}::bigint[], ${settlements.map((s) => s.cursor)}::bigint[],
        ${settlements.map((s) => s.failures)}::int[], ${settlements.map((s) => iso(s.failingSince))}::timestamptz[],
        ${settlements.map((s) => iso(s.nextAttemptAt))}::timestamptz[],
        ${successes.map((attempt) => iso(attempt?.at))}::timestamptz[],
        ${errors.map((attempt) => iso(attempt?.at))}::timestamptz[],
        ${errors.map((attempt) => attempt?.category ?? null)}::text[],
        ${errors.map((attempt) => attempt?.code ?? null)}::int[]
      ) as u(hook_id, generation, epoch, cursor, failures, failing_since, next_attempt_at, success_at, error_at,
        category, code)
    ), fence as (
      select l.partition, l.epoch from lease l where l.partition in (select hook_id % ${PARTITIONS} from input)
      order by l.partition for share
    ), settled as (
      update reverse_hook r
      set cursor = greatest(r.cursor, i.cursor), failures = i.failures, failing_since = i.failing_since,
        next_attempt_at = i.next_attempt_at, last_success_at = coalesce(i.success_at, r.last_success_at),
        last_error_at = coalesce(i.error_at, r.last_error_at),
        last_error_category = case when i.error_at is null then r.last_error_category else i.category end,
        last_error_code = case when i.error_at is null then r.last_error_code else i.code end
      from input i join fence f on f.partition = i.hook_id % ${PARTITIONS} and f.epoch = i.epoch
      where r.id = i.hook_id and r.generation = i.generation and r.removed_at is null
      returning r.id
    ), logged as (
      insert into delivery_attempt (hook_id, seq, last_seq, attempt, at, outcome, category, code, duration_ms)
      select a.hook_id, a.seq, a.last_seq, a.attempt, to_timestamp(a.at_ms / 1000.0), a.outcome, a.category, a.code,
        a.duration_ms
      from unnest(
        ${attempts.hookId}::int[], ${attempts.firstSeq}::bigint[], ${attempts.lastSeq}::bigint[],
        ${attempts.attempt}::int[], ${attempts.atMs}::bigint[], ${attempts.outcome}::text[],
        ${attempts.category}::text[], ${attempts.code}::int[], ${attempts.durationMs}::int[]
      ) as a(hook_id, seq, last_seq, attempt, at_ms, outcome, category, code, duration_ms)
      on conflict do nothing
    )
    select id from settled`;
}

/**
 * A target answered 410: the hook is gone for its clients, its row stays for `klatch hook restore`, and the group gets a
 * notice. Rejects with StaleLaneError when the hook was changed or handed over meanwhile.
 */
export async function removeByTarget(
  tx: Transaction,
  removal: { settlement: Settlement; attempt: AttemptRecord; conversationId: ConversationId; host: string },
): Promise<void> {
  const { settlement, attempt, conversationId, host } = removal;
  // The head first: whoever waits for it holds nothing that others wait for. Then lease and hook, as settlements do.
  const [head] = await tx<{ rev: number }[]>`
    update conversation_head set last_rev = last_rev + 1 where conversation_id = ${conversationId}
    returning last_rev as rev`;
  const fence = await tx`
    select from lease where partition = ${settlement.hookId % PARTITIONS} and epoch = ${settlement.epoch} for share`;
  if (fence.length === 0) throw new StaleLaneError('the lane belongs to somebody else');
  const removed = await tx`
    update reverse_hook set removed_at = now(), removed_by = 'target', generation = generation + 1,
      last_error_at = ${attempt.at}, last_error_category = ${attempt.category}, last_error_code = ${attempt.code}
    where id = ${settlement.hookId} and generation = ${settlement.generation} and removed_at is null
    returning id`;
  if (removed.length === 0) throw new StaleLaneError('the hook was changed meanwhile');
  await tx`
    insert into delivery_attempt (hook_id, seq, last_seq, attempt, at, outcome, category, code, duration_ms)
    values (${settlement.hookId}, ${attempt.firstSeq}, ${attempt.lastSeq}, ${attempt.attempt}, ${attempt.at},
      'unregistered', ${attempt.category}, ${attempt.code}, ${attempt.durationMs})
    on conflict do nothing`;
  await tx`
    insert into notice (conversation_id, rev, kind, details)
    values (${conversationId}, ${head!.rev}, 'hook_removed', ${tx.json({ hook: settlement.hookId, host })})`;
}

/** Rolls a removal back whose hook was changed after the attempt began. */
export class StaleLaneError extends Error {
  override readonly name = 'StaleLaneError';
}
