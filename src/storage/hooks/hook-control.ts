import type { ConversationId, HookId, Seq } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';
import type { HookOrder, HookSignature, SkippableKind } from './hooks.ts';
import { MAX_RETRY_ROWS } from './retries.ts';

/** A hook within its group: a number alone would reach the hooks of others. */
export interface HookReference {
  readonly conversationId: ConversationId;
  readonly hookId: HookId;
}

/** A hook's row while it is locked for a change, and the newest seq of its group. */
export interface LockedHook extends HookReference {
  readonly paused: boolean;
  readonly failures: number;
  readonly order: HookOrder;
  readonly batch: number;
  readonly signature: HookSignature;
  readonly skip: readonly SkippableKind[];
  readonly startAfterSeq: Seq;
  readonly cursor: Seq;
  /** The first message of its group that was not removed. */
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
}

/** What is left out stays as it is. */
export interface HookDeliveryChanges {
  readonly paused?: boolean | undefined;
  readonly order?: HookOrder | undefined;
  readonly batch?: number | undefined;
  readonly signature?: HookSignature | undefined;
  readonly skip?: readonly SkippableKind[] | undefined;
  /** A new secret; the one until now signs beside it for 24 hours. */
  readonly secretSealed?: string | undefined;
}

/**
 * Locks a hook that is not removed until the transaction ends; null when there is none. Only its own row: whoever settles
 * its deliveries locks lease and hook in this order and waits here, and whoever posts is not held up.
 */
export async function lockHook(tx: Transaction, { conversationId, hookId }: HookReference): Promise<LockedHook | null> {
  const [row] = await tx<Omit<LockedHook, 'firstSeq' | 'lastSeq'>[]>`
    select id as "hookId", conversation_id as "conversationId", paused_at is not null as paused, failures,
      ordering as "order", batch, signature, to_json(skip) as skip, start_seq as "startAfterSeq", cursor
    from reverse_hook where id = ${hookId} and conversation_id = ${conversationId} and removed_at is null
    for no key update`;
  if (row === undefined) return null;
  // A statement of its own: the one above sees the head of before it had to wait for the lock.
  const [head] = await tx<{ firstSeq: Seq; lastSeq: Seq }[]>`
    select first_seq as "firstSeq", last_seq as "lastSeq" from conversation_head where conversation_id = ${conversationId}`;
  return { ...row, ...head! };
}

/** A clean sheet: what is sent next is sent at once, and its failures are counted from the first. */
const resetFailureColumns = (tx: Transaction) => tx`
  failures = 0, failing_since = null, parked_at = null, next_attempt_at = null, rejections = 0`;

/**
 * Changes how a hook delivers. Resuming forgets its failures and makes everything due at once, also for a hook that fails
 * and is not paused. Returns false, and has written nothing, when everything was so already.
 */
export async function applyChanges(tx: Transaction, hook: LockedHook, changes: HookDeliveryChanges): Promise<boolean> {
  const {
    order = hook.order,
    batch = hook.batch,
    signature = hook.signature,
    skip = hook.skip,
    secretSealed,
  } = changes;
  const resumes = changes.paused === false;
  const hurried = resumes ? await makeRetryRowsDue(tx, hook.hookId) : 0;
  const differs =
    order !== hook.order ||
    batch !== hook.batch ||
    signature !== hook.signature ||
    [...skip].sort().join() !== [...hook.skip].sort().join() ||
    secretSealed !== undefined ||
    (changes.paused === true && !hook.paused) ||
    (resumes && (hook.paused || hook.failures > 0 || hurried > 0));
  if (!differs) return false;
  await tx`
    update reverse_hook set generation = generation + 1, ordering = ${order}, batch = ${batch},
      signature = ${signature}, skip = ${[...skip]}::text[]
      ${changes.paused === true ? tx`, paused_at = coalesce(paused_at, now())` : tx``}
      ${resumes ? tx`, paused_at = null, ${resetFailureColumns(tx)}` : tx``}
      ${
        secretSealed === undefined
          ? tx``
          : tx`, old_secret_sealed = secret_sealed, old_secret_until = now() + interval '24 hours',
              secret_sealed = ${secretSealed}`
      }
    where id = ${hook.hookId}`;
  return true;
}

/** By the clock of a process, as everything that a lane waits for: the database's may be ahead of it. */
async function makeRetryRowsDue(tx: Transaction, hookId: HookId): Promise<number> {
  const now = new Date();
  const { count } = await tx`
    update delivery_retry set attempts = 0, next_at = ${now} where hook_id = ${hookId} and next_at > ${now}`;
  return count;
}

/**
 * Moves a hook back, so that everything from this seq on is sent again, in order. Never before its start, and never
 * forward, over what it still has to deliver: its lane passes what was removed, and says so. Returns the first seq that is sent next.
 */
export async function redeliverFrom(tx: Transaction, hook: LockedHook, seq: number): Promise<Seq> {
  const { hookId, startAfterSeq, cursor, firstSeq } = hook;
  const first = Math.min(Math.max(seq, startAfterSeq + 1, firstSeq), Math.max(cursor + 1, firstSeq)) as Seq;
  await tx`delete from delivery_retry where hook_id = ${hookId} and seq >= ${first}`;
  await setCursorAndResetFailures(tx, hook, Math.min(first - 1, cursor));
  return first;
}

/**
 * Whether the cursor moves or not, what is in flight says nothing about the new place: its settlement would undo it.
 */
async function setCursorAndResetFailures(tx: Transaction, { hookId }: LockedHook, cursor: number): Promise<void> {
  await tx`
    update reverse_hook set cursor = ${cursor}, generation = generation + 1, cursor_generation = generation + 1,
      batch_last_seq = null, unbatched_until = null, ${resetFailureColumns(tx)}
    where id = ${hookId}`;
}

/** How far a hook is, as its last settlement says; null when there is none. */
export async function findHookCursor(sql: Sql, { conversationId, hookId }: HookReference): Promise<Seq | null> {
  const [row] = await sql<{ cursor: Seq }[]>`
    select cursor from reverse_hook where id = ${hookId} and conversation_id = ${conversationId} and removed_at is null`;
  return row?.cursor ?? null;
}

/**
 * Has single messages sent again, apart from the order of the others. They have to be in the log and behind the hook's
 * start. What a strict hook has still to deliver comes in its order, and only there: a later message must not arrive
 * first. Returns false, and has written nothing, when the hook would have more than `MAX_RETRY_ROWS` of them.
 */
export async function redeliverSelectedWithinLimit(
  tx: Transaction,
  hook: LockedHook,
  asked: readonly Seq[],
): Promise<boolean> {
  const { conversationId, hookId, order, cursor } = hook;
  const seqs = order === 'strict' ? asked.filter((seq) => seq <= cursor) : asked;
  if (seqs.length === 0) return true;
  const now = new Date();
  const [others] = await tx<{ count: number }[]>`
    select count(*) as count from delivery_retry where hook_id = ${hookId} and seq <> all(${[...seqs]}::bigint[])`;
  if (others!.count + seqs.length > MAX_RETRY_ROWS) return false;
  await tx`
    insert into delivery_retry (conversation_id, hook_id, seq, last_seq, attempts, next_at)
    select ${conversationId}, ${hookId}, seq, seq, 0, ${now}::timestamptz from unnest(${[...seqs]}::bigint[]) as asked (seq)
    on conflict on constraint delivery_retry_pkey do update set attempts = 0, next_at = ${now}`;
  await tx`update reverse_hook set generation = generation + 1 where id = ${hookId}`;
  return true;
}

/** What a hook was to deliver and never will. */
interface SkippedRange {
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  readonly count: number;
}

/**
 * Drops everything that a hook still has to deliver, with one row in the delivery log. Null, and nothing is written, when
 * there is nothing to drop.
 */
export async function skipBacklog(tx: Transaction, hook: LockedHook): Promise<SkippedRange | null> {
  const { hookId, cursor, firstSeq: groupFirstSeq, lastSeq } = hook;
  const dropped = await tx<{ seq: Seq; last: Seq }[]>`
    delete from delivery_retry where hook_id = ${hookId} returning seq, last_seq as last`;
  // What lies beyond the cursor counts as part of the backlog, and once.
  const apart = dropped.filter(({ seq }) => seq <= cursor);
  if (apart.length === 0 && cursor >= lastSeq) {
    if (hook.failures > 0) await setCursorAndResetFailures(tx, hook, cursor);
    return null;
  }
  await setCursorAndResetFailures(tx, hook, Math.max(cursor, lastSeq));
  const firstSeq = apart.reduce((least, { seq }) => (seq < least ? seq : least), (cursor + 1) as Seq);
  const ends = apart.map(({ last }) => last);
  const range = {
    firstSeq,
    lastSeq: (lastSeq > cursor ? lastSeq : Math.max(...ends)) as Seq,
    // What was removed is dropped as well, and was no backlog any more.
    count:
      lastSeq -
      Math.max(cursor, groupFirstSeq - 1) +
      apart.reduce((sum, { seq, last }) => sum + Math.max(0, last - Math.max(seq, groupFirstSeq) + 1), 0),
  };
  // Whole milliseconds, as every time in the log.
  await tx`
    insert into delivery_attempt (conversation_id, hook_id, seq, last_seq, attempt, at, outcome, duration_ms)
    values (${hook.conversationId}, ${hookId}, ${range.firstSeq}, ${range.lastSeq}, 0, date_trunc('milliseconds', clock_timestamp()), 'skipped', 0)
    on conflict do nothing`;
  return range;
}

/**
 * The first seq after `after` whose message was sent at this moment or later; one beyond the last when there is none. No
 * message was sent earlier than the one before it, so some twenty look-ups by key find it in a million.
 */
export async function firstSeqSince(
  sql: Sql | Transaction,
  place: { conversationId: ConversationId; after: Seq; lastSeq: Seq },
  moment: Date,
): Promise<Seq> {
  const { conversationId, after, lastSeq } = place;
  const [found] = await sql<{ seq: Seq }[]>`
    with recursive search (low, high) as (
      select ${after + 1}::bigint, ${lastSeq + 1}::bigint
      union all
      select case when m.sent_at < ${moment} then m.seq + 1 else s.low end,
        case when m.sent_at < ${moment} then s.high else m.seq end
      from search s join lateral (
        select seq, sent_at from message
        where conversation_id = ${conversationId} and seq = (s.low + s.high) / 2 and s.low < s.high limit 1
      ) m on true
    )
    select low as seq from search order by high - low limit 1`;
  return found!.seq;
}

/** A hook as a ping needs it. */
export interface PingTarget extends HookReference {
  readonly title: string;
  readonly url: string;
  readonly signature: HookSignature;
  readonly secretSealed: string;
  readonly oldSecretSealed: string | null;
  readonly oldSecretUntil: Date | null;
}

/**
 * Takes the right to ping a hook now, which there is once in `intervalS` seconds over all processes. Null when it is too
 * soon; `undefined` when there is no such hook.
 */
export async function claimPing(
  sql: Sql,
  { conversationId, hookId }: HookReference,
  intervalS: number,
): Promise<PingTarget | null | undefined> {
  // A time ahead of us was written before the clock was put back: it holds nobody up.
  const [claimed] = await sql<PingTarget[]>`
    update reverse_hook r set pinged_at = now()
    from conversation c
    where r.id = ${hookId} and r.conversation_id = ${conversationId} and r.removed_at is null and c.id = r.conversation_id
      and (r.pinged_at is null or r.pinged_at > now() or r.pinged_at <= now() - make_interval(secs => ${intervalS}))
    returning r.id as "hookId", r.conversation_id as "conversationId", c.title, r.url, r.signature,
      r.secret_sealed as "secretSealed", r.old_secret_sealed as "oldSecretSealed", r.old_secret_until as "oldSecretUntil"`;
  if (claimed !== undefined) return claimed;
  const [found] = await sql`
    select from reverse_hook where id = ${hookId} and conversation_id = ${conversationId} and removed_at is null`;
  return found === undefined ? undefined : null;
}
