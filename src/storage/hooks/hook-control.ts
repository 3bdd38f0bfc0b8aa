import type { ChangeEventKind } from '../../model/change-event.ts';
import type { HookFilter, HookFormat } from '../../model/hook-format.ts';
import type { ConversationId, HookId, Rev, Seq } from '../../model/ids.ts';
import type { Fragment, Sql, Transaction } from '../db/connection.ts';
import type { HookOrder, HookSignature } from './hooks.ts';
import { MAX_RETRY_ROWS, type RetryRangeWithAttempts } from './retries.ts';
import { updateWantsEvents } from './wants-events.ts';

/** The ids of a hook and its group: a look-up by the hook's id alone would also find hooks of other groups. */
export interface HookReference {
  readonly conversationId: ConversationId;
  readonly hookId: HookId;
}

/** A hook's row while it is locked for a change, and the newest seq of its group. */
export interface LockedHook extends HookReference, HookFilter {
  readonly url: string;
  readonly secretSealed: string;
  readonly description: string | null;
  readonly format: HookFormat;
  readonly paused: boolean;
  readonly failures: number;
  readonly order: HookOrder;
  readonly batch: number;
  readonly signature: HookSignature;
  readonly startAfterSeq: Seq;
  readonly cursor: Seq;
  readonly events: readonly ChangeEventKind[];
  /** This field and the next one are null in a hook that asks for no events. */
  readonly eventStartAfterRev: Rev | null;
  readonly eventCursor: Rev | null;
  /** The seq of the first message of the group that retention has not removed. */
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  readonly lastRev: Rev;
}

type OptionalHookFilter = { readonly [Key in keyof HookFilter]?: HookFilter[Key] | undefined };

/** Changes of a hook; fields that are left out keep their value. */
export interface HookOptionsAndPauseChanges extends OptionalHookFilter {
  readonly paused?: boolean | undefined;
  /** Null: the hook has no description after the change. */
  readonly description?: string | null | undefined;
  readonly format?: HookFormat | undefined;
  readonly order?: HookOrder | undefined;
  readonly batch?: number | undefined;
  readonly signature?: HookSignature | undefined;
  /** To change the events, the caller has to hold the lock of the group's head. */
  readonly events?: readonly ChangeEventKind[] | undefined;
  /** A new secret; for 24 hours deliveries are also signed with the old one. */
  readonly secretSealed?: string | undefined;
}

/**
 * Locks a hook until the transaction ends; null when the group has no such hook, or it is removed. It locks only the
 * hook's own row. A settlement, which locks the lease before the hook, waits for this lock; posts do not wait.
 */
export function lockHook(tx: Transaction, hook: HookReference): Promise<LockedHook | null> {
  return findHookForChange(tx, hook, tx`for no key update`);
}

/** The hook as `lockHook` returns it, without a lock: what a change would find now. */
export function findHookUnlocked(sql: Sql, hook: HookReference): Promise<LockedHook | null> {
  return findHookForChange(sql, hook, sql``);
}

async function findHookForChange(
  sql: Sql | Transaction,
  { conversationId, hookId }: HookReference,
  lock: Fragment,
): Promise<LockedHook | null> {
  const [row] = await sql<Omit<LockedHook, 'firstSeq' | 'lastSeq' | 'lastRev'>[]>`
    select id as "hookId", conversation_id as "conversationId", paused_at is not null as paused, failures,
      url, secret_sealed as "secretSealed", description, format, ordering as "order", batch, signature, to_json(skip) as skip, to_json(triggers) as triggers,
      max_age as "maxAgeS", start_seq as "startAfterSeq", cursor,
      to_json(events) as events, event_start_rev as "eventStartAfterRev", event_cursor as "eventCursor"
    from reverse_hook where id = ${hookId} and conversation_id = ${conversationId} and removed_at is null ${lock}`;
  if (row === undefined) return null;
  // A separate statement: the first one may have waited for its lock, and would return the head of before that wait.
  const [head] = await sql<Pick<LockedHook, 'firstSeq' | 'lastSeq' | 'lastRev'>[]>`
    select first_seq as "firstSeq", last_seq as "lastSeq", last_rev as "lastRev" from conversation_head
    where conversation_id = ${conversationId}`;
  return { ...row, ...head! };
}

/** Resets the failure state: the next request is sent at once, and failures are counted from zero. */
const resetFailureColumns = (tx: Transaction) => tx`
  failures = 0, failing_since = null, parked_at = null, next_attempt_at = null, rejections = 0`;

/**
 * Changes how a hook delivers. Resuming clears its failures, and makes its next request and its retry rows due at once,
 * also for a failing hook that is not paused. Returns false, and has written nothing, when every value was set already.
 */
export async function applyHookChanges(
  tx: Transaction,
  hook: LockedHook,
  changes: HookOptionsAndPauseChanges,
): Promise<boolean> {
  const {
    description = hook.description,
    format = hook.format,
    order = hook.order,
    batch = hook.batch,
    signature = hook.signature,
    skip = hook.skip,
    triggers = hook.triggers,
    maxAgeS = hook.maxAgeS,
    events = hook.events,
    secretSealed,
  } = changes;
  const resumes = changes.paused === false;
  const hurried = resumes ? await makeRetryRowsDue(tx, hook.hookId) : 0;
  const changesDelivery =
    format !== hook.format ||
    order !== hook.order ||
    batch !== hook.batch ||
    signature !== hook.signature ||
    !hasSameMembers(skip, hook.skip) ||
    triggers.join('\n') !== hook.triggers.join('\n') ||
    maxAgeS !== hook.maxAgeS ||
    !hasSameMembers(events, hook.events) ||
    secretSealed !== undefined ||
    (changes.paused === true && !hook.paused) ||
    (resumes && (hook.paused || hook.failures > 0 || hurried > 0));
  if (!changesDelivery && description === hook.description) return false;
  // A new generation makes the lane start again, for which a description is no reason.
  await tx`
    update reverse_hook set generation = generation + ${changesDelivery ? 1 : 0}::int, description = ${description}, format = ${format}, ordering = ${order}, batch = ${batch},
      signature = ${signature}, skip = ${[...skip]}::text[], triggers = ${[...triggers]}::text[], max_age = ${maxAgeS}
      ${changes.paused === true ? tx`, paused_at = coalesce(paused_at, now())` : tx``}
      ${resumes ? tx`, paused_at = null, ${resetFailureColumns(tx)}` : tx``}
      ${
        secretSealed === undefined
          ? tx``
          : tx`, old_secret_sealed = secret_sealed, old_secret_until = now() + interval '24 hours',
              secret_sealed = ${secretSealed}`
      }
    where id = ${hook.hookId}`;
  if (!hasSameMembers(events, hook.events)) await changeEvents(tx, hook, events);
  return true;
}

function hasSameMembers(a: readonly string[], b: readonly string[]): boolean {
  return [...a].sort().join() === [...b].sort().join();
}

/**
 * Changes which events a hook asks for. A hook that begins to ask starts after the newest change: the head is locked,
 * so that every later change finds `wants_events` set. `rejections` restarts at 0, because the event that the target
 * refused may be one that the hook no longer asks for.
 */
async function changeEvents(tx: Transaction, hook: LockedHook, events: readonly ChangeEventKind[]): Promise<void> {
  const { hookId, conversationId, eventStartAfterRev, eventCursor, lastRev } = hook;
  const asksForNone = events.length === 0;
  await tx`
    update reverse_hook set events = ${[...new Set(events)]}::text[], rejections = 0,
      event_start_rev = ${asksForNone ? null : (eventStartAfterRev ?? lastRev)},
      event_cursor = ${asksForNone ? null : (eventCursor ?? lastRev)}
      ${asksForNone ? tx`, batch_last_rev = null, unbatched_until_rev = null` : tx``}
    where id = ${hookId}`;
  if (asksForNone) await tx`delete from delivery_retry where hook_id = ${hookId} and rev > 0`;
  await updateWantsEvents(tx, conversationId);
}

/** Makes retry rows due now, by this process's clock, which lanes use too: the database's clock may be ahead of it. */
async function makeRetryRowsDue(tx: Transaction, hookId: HookId): Promise<number> {
  const now = new Date();
  const { count } = await tx`
    update delivery_retry set attempts = 0, next_at = ${now} where hook_id = ${hookId} and next_at > ${now}`;
  return count;
}

/** The point from which a redelivery sends messages and events again. */
export interface RedeliveryStart {
  readonly seq: number;
  /** Only events of this moment or later are sent again; null: the events after the message `seq`. */
  readonly since: Date | null;
}

/**
 * Moves a hook back, so that its lane sends the messages from `seq` on and the events from `since` on again, in order.
 * The cursor never moves before the hook's start, and never forward over pending messages. The lane skips messages that
 * a retention rule removed, and records that. Returns the first seq that the lane sends next.
 */
export async function redeliverFrom(tx: Transaction, hook: LockedHook, { seq, since }: RedeliveryStart): Promise<Seq> {
  const { hookId, cursor } = hook;
  const first = firstRedeliveredSeq(hook, seq);
  const eventCursor = await eventCursorForRedelivery(tx, hook, { seq: first, since });
  await tx`
    delete from delivery_retry
    where hook_id = ${hookId} and (seq >= ${first} or rev > ${eventCursor ?? Number.MAX_SAFE_INTEGER})`;
  await setCursorsAndResetFailures(tx, hook, { cursor: Math.min(first - 1, cursor), eventCursor });
  return first;
}

/** The first seq that the lane sends after `redeliverFrom` with this start. */
export function firstRedeliveredSeq({ startAfterSeq, cursor, firstSeq }: LockedHook, seq: number): Seq {
  return Math.min(Math.max(seq, startAfterSeq + 1, firstSeq), Math.max(cursor + 1, firstSeq)) as Seq;
}

/** The number of events that the lane sends after `redeliverFrom` with this start. */
export async function countRedeliveredEvents(
  sql: Sql | Transaction,
  hook: LockedHook,
  { seq, since }: RedeliveryStart,
): Promise<number> {
  const cursor = await eventCursorForRedelivery(sql, hook, { seq: firstRedeliveredSeq(hook, seq), since });
  if (cursor === null) return 0;
  const [row] = await (sql as Sql)<{ count: number }[]>`
    select count(*) as count from hook_event
    where conversation_id = ${hook.conversationId} and rev > ${cursor} and seq >= ${hook.firstSeq}`;
  return row!.count;
}

/** The event cursor to which a redelivery moves the hook back; null in a hook that asks for no events. */
async function eventCursorForRedelivery(
  sql: Sql | Transaction,
  { conversationId, eventStartAfterRev, eventCursor }: LockedHook,
  { seq, since }: RedeliveryStart,
): Promise<number | null> {
  if (eventCursor === null) return null;
  const [found] = await (sql as Sql)<{ rev: Rev | null }[]>`
    select min(rev) as rev from hook_event
    where conversation_id = ${conversationId} and rev > ${eventStartAfterRev} and rev <= ${eventCursor}
      and ${since === null ? sql`after_seq >= ${seq}` : sql`at >= ${since}`}`;
  const first = found?.rev ?? null;
  return first === null ? eventCursor : first - 1;
}

/**
 * Sets the cursors and resets the failure state. It raises the generations even where no cursor moves: otherwise the
 * settlement of a request in flight would undo the new position or the reset.
 */
async function setCursorsAndResetFailures(
  tx: Transaction,
  { hookId }: LockedHook,
  { cursor, eventCursor }: { cursor: number; eventCursor: number | null },
): Promise<void> {
  await tx`
    update reverse_hook set cursor = ${cursor}, event_cursor = ${eventCursor}, generation = generation + 1,
      cursor_generation = generation + 1, batch_last_seq = null, unbatched_until = null, batch_last_rev = null,
      unbatched_until_rev = null, ${resetFailureColumns(tx)}
    where id = ${hookId}`;
}

/** A hook's cursor after its last settlement; null when the group has no such hook, or it is removed. */
export async function findHookCursor(sql: Sql, { conversationId, hookId }: HookReference): Promise<Seq | null> {
  const [row] = await sql<{ cursor: Seq }[]>`
    select cursor from reverse_hook where id = ${hookId} and conversation_id = ${conversationId} and removed_at is null`;
  return row?.cursor ?? null;
}

/**
 * Makes a lane send single messages again, outside the order of the others. They have to be in the log and after the
 * hook's start. With the order `strict`, messages after the cursor are left out, because the lane sends these in their
 * order. Returns false, and has written nothing, when the hook would have more than `MAX_RETRY_ROWS` retry rows.
 */
export async function redeliverSelectedUnlessTooMany(
  tx: Transaction,
  hook: LockedHook,
  requestedSeqs: readonly Seq[],
): Promise<boolean> {
  const { conversationId, hookId } = hook;
  const seqs = separatelyRedeliveredSeqs(hook, requestedSeqs);
  if (seqs.length === 0) return true;
  const now = new Date();
  const [others] = await tx<{ count: number }[]>`
    select count(*) as count from delivery_retry where hook_id = ${hookId} and seq <> all(${[...seqs]}::bigint[])`;
  if (others!.count + seqs.length > MAX_RETRY_ROWS) return false;
  await tx`
    with hook as (update reverse_hook set generation = generation + 1 where id = ${hookId} returning generation)
    insert into delivery_retry (conversation_id, hook_id, seq, last_seq, attempts, next_at, generation)
    select ${conversationId}, ${hookId}, seq, seq, 0, ${now}::timestamptz, hook.generation
    from unnest(${[...seqs]}::bigint[]) as asked (seq), hook
    on conflict on constraint delivery_retry_pkey
    do update set attempts = 0, next_at = ${now}, generation = excluded.generation`;
  return true;
}

/** With the order `strict`, the lane sends messages after the cursor in their order, and not a second time. */
export function separatelyRedeliveredSeqs(
  { order, cursor }: Pick<LockedHook, 'order' | 'cursor'>,
  requestedSeqs: readonly Seq[],
): readonly Seq[] {
  return order === 'strict' ? requestedSeqs.filter((seq) => seq <= cursor) : requestedSeqs;
}

/** Messages or events that a hook had to deliver and now never will. */
interface SkippedRange {
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  readonly count: number;
}

/**
 * Drops everything that a hook still has to deliver. It writes a row for the messages and another one for the events
 * into the delivery log. Returns null when there is nothing to drop: then it only resets the failures of a failing
 * hook.
 */
export async function skipBacklog(tx: Transaction, hook: LockedHook): Promise<SkippedRange | null> {
  const { hookId, cursor, eventCursor, lastSeq, lastRev } = hook;
  const dropped = await tx<DroppedRetry[]>`
    delete from delivery_retry where hook_id = ${hookId}
    returning seq, last_seq as "lastSeq", rev, last_rev as "lastRev"`;
  const messages = skippedMessageRange(hook, dropped);
  const events = eventCursor === null ? null : await findDroppedEvents(tx, hook, dropped);
  if (messages === null && events === null) {
    if (hook.failures > 0) await setCursorsAndResetFailures(tx, hook, { cursor, eventCursor });
    return null;
  }
  await setCursorsAndResetFailures(tx, hook, {
    cursor: Math.max(cursor, lastSeq),
    eventCursor: eventCursor === null ? null : Math.max(eventCursor, lastRev),
  });
  if (messages !== null) await logSkipped(tx, hook, { ...messages, rev: 0, lastRev: null });
  if (events !== null) await logSkipped(tx, hook, events);
  const { firstSeq, lastSeq: last } = (messages ?? events)!;
  return { firstSeq, lastSeq: last, count: (messages?.count ?? 0) + (events?.count ?? 0) };
}

type DroppedRetry = Pick<RetryRangeWithAttempts, 'seq' | 'lastSeq' | 'rev' | 'lastRev'>;

function skippedMessageRange(
  { cursor, firstSeq: groupFirstSeq, lastSeq }: LockedHook,
  dropped: readonly DroppedRetry[],
): SkippedRange | null {
  // Leaves out retry rows after the cursor: the range after the cursor includes their messages already.
  const retriesUpToCursor = dropped.filter(({ seq, rev }) => rev === 0 && seq <= cursor);
  if (retriesUpToCursor.length === 0 && cursor >= lastSeq) return null;
  const ends = retriesUpToCursor.map((row) => row.lastSeq);
  return {
    firstSeq: Math.min(cursor + 1, ...retriesUpToCursor.map(({ seq }) => seq)) as Seq,
    lastSeq: (lastSeq > cursor ? lastSeq : Math.max(...ends)) as Seq,
    // The count leaves out messages that a retention rule removed: they were no longer part of the backlog.
    count:
      lastSeq -
      Math.max(cursor, groupFirstSeq - 1) +
      retriesUpToCursor.reduce((sum, row) => sum + Math.max(0, row.lastSeq - Math.max(row.seq, groupFirstSeq) + 1), 0),
  };
}

interface SkippedEvents extends SkippedRange {
  readonly rev: Rev;
  readonly lastRev: Rev;
}

async function findDroppedEvents(
  tx: Transaction,
  { conversationId, eventCursor, firstSeq, lastRev }: LockedHook,
  dropped: readonly DroppedRetry[],
): Promise<SkippedEvents | null> {
  const [found] = await tx<SkippedEvents[]>`
    select count(*)::int as count, min(e.rev) as rev, max(e.rev) as "lastRev", (array_agg(e.seq order by e.rev))[1] as "firstSeq",
      (array_agg(e.seq order by e.rev desc))[1] as "lastSeq"
    from hook_event e
    where e.conversation_id = ${conversationId} and e.seq >= ${firstSeq} and e.rev <= ${lastRev} and (e.rev > ${eventCursor} or exists (
      select from unnest(${dropped.map((row) => row.rev)}::bigint[], ${dropped.map((row) => row.lastRev)}::bigint[])
        as d(rev, last_rev) where e.rev between d.rev and d.last_rev))`;
  return found!.count === 0 ? null : found!;
}

/** Writes a row `skipped` into the delivery log, whose times are all in whole milliseconds. */
async function logSkipped(
  tx: Transaction,
  { conversationId, hookId }: HookReference,
  range: SkippedRange & { readonly rev: number; readonly lastRev: number | null },
): Promise<void> {
  const { firstSeq, lastSeq, rev, lastRev } = range;
  await tx`
    insert into delivery_attempt
      (conversation_id, hook_id, seq, last_seq, rev, last_rev, attempt, at, outcome, duration_ms)
    values (${conversationId}, ${hookId}, ${firstSeq}, ${lastSeq}, ${rev}, ${lastRev}, 0,
      date_trunc('milliseconds', clock_timestamp()), 'skipped', 0)
    on conflict do nothing`;
}
