import type { ChangeEventKind } from '../../model/change-event.ts';
import type { HookHealth } from '../../model/hook.ts';
import type { HookFilter, HookFormat } from '../../model/hook-format.ts';
import type { ConversationId, HookId, Rev, Seq } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';
import { updateWantsEvents } from './wants-events.ts';

export type HookOrder = 'strict' | 'none';
export type HookSignature = 'v1' | 'v1a' | 'both';
export interface NewHook extends HookFilter {
  readonly conversationId: ConversationId;
  readonly url: string;
  readonly description: string | null;
  readonly format: HookFormat;
  readonly order: HookOrder;
  readonly batch: number;
  readonly signature: HookSignature;
  /** The events that the hook asks for in addition to new messages. */
  readonly events: readonly ChangeEventKind[];
  readonly secretSealed: string;
  readonly startAfterSeq: Seq;
  /** The conversation's newest rev, read with `startAfterSeq` under the head's lock. */
  readonly startAfterRev: Rev;
}

/**
 * A hook as its group's information and its health show it. `pending` counts the messages after the cursor, the events
 * after the event cursor, and the messages and events of retry rows up to the cursors. `nextAttemptAt` is null for a
 * hook that is paused or has no retry to wait for.
 */
export interface HookInfo extends HookHealth {
  readonly id: HookId;
  readonly url: string;
  readonly pending: number;
  readonly oldestPendingAt: Date | null;
  readonly lastSuccessAt: Date | null;
  readonly lastErrorAt: Date | null;
  readonly lastErrorCategory: string | null;
  readonly lastErrorCode: number | null;
  readonly nextAttemptAt: Date | null;
}

/**
 * Inserts a hook. Rejects with a violation of `reverse_hook_url` if the group has an active hook with this URL already.
 */
export async function insertHook(tx: Transaction, hook: NewHook): Promise<HookId> {
  const { conversationId, events } = hook;
  const startAfterRev = events.length > 0 ? hook.startAfterRev : null;
  const [row] = await tx<{ id: HookId }[]>`
    insert into reverse_hook
      (conversation_id, url, description, format, ordering, batch, signature, skip, triggers, max_age, secret_sealed,
        start_seq, cursor, events, event_start_rev, event_cursor)
    values (${conversationId}, ${hook.url}, ${hook.description}, ${hook.format}, ${hook.order}, ${hook.batch},
      ${hook.signature}, ${[...hook.skip]}::text[], ${[...hook.triggers]}::text[], ${hook.maxAgeS}, ${hook.secretSealed},
      ${hook.startAfterSeq}, ${hook.startAfterSeq}, ${[...events]}::text[], ${startAfterRev}, ${startAfterRev})
    returning id`;
  if (events.length > 0) await updateWantsEvents(tx, conversationId);
  return row!.id;
}

/** The number of hooks of a group, without removed ones. */
export async function countHooks(tx: Transaction, conversationId: ConversationId): Promise<number> {
  const [row] = await tx<{ count: number }[]>`
    select count(*) as count from reverse_hook where conversation_id = ${conversationId} and removed_at is null`;
  return row!.count;
}

/**
 * Columns of a HookInfo: from `reverse_hook r`, its `conversation_head h`, its retry rows `q`, its events `e`, and its
 * oldest pending `message m` if any. Only this query defines what is pending.
 */
export const hookColumns = (sql: Sql | Transaction) => sql`
  r.id, r.url, r.paused_at as "pausedAt", r.failures, r.failing_since as "failingSince",
  h.last_seq - greatest(r.cursor, h.first_seq - 1) + q.pending + e.pending as pending,
  least(m.sent_at, e.at) as "oldestPendingAt", r.last_success_at as "lastSuccessAt",
  r.last_error_at as "lastErrorAt", r.last_error_category as "lastErrorCategory",
  r.last_error_code as "lastErrorCode",
  case when r.paused_at is null then coalesce(r.next_attempt_at, q.next_at) end as "nextAttemptAt"`;

/**
 * The tables that `hookColumns` reads besides `reverse_hook r`. Each join is lateral with a limit, so that PostgreSQL
 * looks each row up by its key. Without the limits, PostgreSQL's generic plan, which suits any page size, read the
 * whole message log.
 */
export const hookJoins = (sql: Sql | Transaction) => sql`
  cross join lateral (
    select h.last_seq, h.first_seq from conversation_head h where h.conversation_id = r.conversation_id limit 1) h
  cross join lateral (
    -- Without retry rows after the cursor: the messages after the cursor include theirs already. Messages that a
    -- retention rule removed are not pending.
    select coalesce(sum(d.last_seq - greatest(d.seq, h.first_seq) + 1) filter (where d.rev = 0), 0)::bigint as pending,
      min(d.seq) filter (where d.rev = 0) as first, min(d.next_at) as next_at, count(*) filter (where d.rev > 0) as events
    from delivery_retry d
    where d.hook_id = r.id and d.seq <= r.cursor
      and (d.rev = 0 and d.last_seq >= h.first_seq or d.rev > 0 and d.rev <= r.event_cursor)) q
  cross join lateral (
    -- Finds no event of a hook that asks for none: its event cursor is null.
    select count(*) as pending, min(w.at) as at from (
      select e.at, e.seq from hook_event e where e.conversation_id = r.conversation_id and e.rev > r.event_cursor
      union all
      select e.at, e.seq from delivery_retry d join hook_event e
        on e.conversation_id = r.conversation_id and e.rev between d.rev and d.last_rev
      where q.events > 0 and d.hook_id = r.id and d.rev > 0 and d.rev <= r.event_cursor
    ) w where w.seq >= h.first_seq) e
  left join lateral (
    select m.sent_at from message m
    where m.conversation_id = r.conversation_id and m.seq = greatest(least(r.cursor + 1, q.first), h.first_seq) limit 1
  ) m on true`;

/** The hooks of a group, oldest first; with `onlyHookId` at most that one. Removed hooks are left out. */
export async function findHooks(
  sql: Sql | Transaction,
  conversationId: ConversationId,
  onlyHookId: number | null,
): Promise<HookInfo[]> {
  return sql<HookInfo[]>`
    select ${hookColumns(sql)} from reverse_hook r ${hookJoins(sql)}
    where r.conversation_id = ${conversationId} and r.removed_at is null and (${onlyHookId}::bigint is null or r.id = ${onlyHookId}::bigint)
    order by r.id`;
}

/**
 * Marks a hook as removed by a client; its row, secret and cursor stay for a while. Returns its URL, or null if the
 * group has no such hook. The caller has to hold the lock of the group's head.
 */
export async function markHookRemovedByClient(
  tx: Sql | Transaction,
  conversationId: ConversationId,
  hookId: number,
): Promise<string | null> {
  const [row] = await tx<{ url: string }[]>`
    update reverse_hook set removed_at = now(), removed_by = 'client', generation = generation + 1
    where conversation_id = ${conversationId} and id = ${hookId} and removed_at is null
    returning url`;
  await updateWantsEvents(tx, conversationId);
  return row?.url ?? null;
}

/**
 * Restores a hook that was removed because its target answered 410. It keeps its id, secret and cursor, and is due at
 * once. Its events start at the newest change, because changes may have written no events while it was removed. The
 * caller has to hold the lock of the group's head. Rejects with a violation of `reverse_hook_url` if the group has an
 * active hook with its URL again; returns false if there is no such hook.
 */
export async function restoreTargetRemovedHook(
  tx: Transaction,
  { conversationId, hookId }: { conversationId: ConversationId; hookId: HookId },
): Promise<boolean> {
  const rows = await tx`
    update reverse_hook r set removed_at = null, removed_by = null, generation = generation + 1, failures = 0,
      rejections = 0, failing_since = null, parked_at = null, next_attempt_at = null,
      event_start_rev = case when r.event_cursor is not null then h.last_rev end,
      event_cursor = case when r.event_cursor is not null then h.last_rev end,
      batch_last_rev = null, unbatched_until_rev = null
    from conversation_head h
    where r.id = ${hookId} and removed_by = 'target' and h.conversation_id = r.conversation_id
    returning id`;
  await tx`delete from delivery_retry where hook_id = ${hookId} and rev > 0`;
  const now = new Date();
  await tx`update delivery_retry set next_at = ${now} where hook_id = ${hookId} and next_at > ${now}`;
  await updateWantsEvents(tx, conversationId);
  return rows.length > 0;
}

/** Finds the active hook of a group with this URL; null: there is none. */
export async function findHookByUrl(sql: Sql, conversationId: ConversationId, url: string): Promise<HookId | null> {
  const [row] = await sql<{ id: HookId }[]>`
    select id from reverse_hook where conversation_id = ${conversationId} and url = ${url} and removed_at is null`;
  return row?.id ?? null;
}

/** The number of hooks whose deliveries are signed with a key of the server. */
export async function countServerKeySignedHooks(sql: Sql): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(*) as count from reverse_hook where signature <> 'v1' and removed_at is null`;
  return row!.count;
}

/** Makes hooks due at once that failed only because a server key was missing; returns their number. */
export async function retryHooksLackingServerKey(sql: Sql): Promise<number> {
  const rows = await sql`
    update reverse_hook set next_attempt_at = null
    where failures > 0 and last_error_category = 'signature' and next_attempt_at is not null and removed_at is null
    returning id`;
  return rows.length;
}
