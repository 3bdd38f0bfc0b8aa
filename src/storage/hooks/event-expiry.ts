import type { ConversationId, HookId, Rev, Seq } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';
import type { Pool } from '../db/pool.ts';
import { insertNotice } from '../messages/notices.ts';

/**
 * The greatest age of a stored event, and the most events of a conversation. Events are kept for hooks that are
 * unreachable for a while; they are not a second message log.
 */
export const EVENT_RETENTION_MS = 7 * 86_400_000;
export const MAX_EVENTS_PER_CONVERSATION = 100_000;
/** The most rows that one statement deletes, and the most conversations that one query examines. */
const DELETE_PAGE_ROWS = 5_000;
const CONVERSATIONS_PER_QUERY = 500;
/** The time-out of queries that read up to `MAX_EVENTS_PER_CONVERSATION` index entries for each conversation. */
const SLOW_QUERY_TIMEOUT_MS = 60_000;

/** How long events are kept, and callbacks for the caller. */
interface EventExpiry {
  /** The job deletes events that were written before this time. */
  readonly writtenBefore: Date;
  /** If a conversation has more events than this, the job deletes the oldest. */
  readonly maxEvents: number;
  /** The job awaits this call before each statement; a rejection aborts the round. */
  readonly beforeStep: () => Promise<void>;
  /**
   * Called when hooks of the conversation lost events, with the number of lost events, summed over the hooks. The rows
   * of these hooks have changed, and the group has new notices.
   */
  readonly onEventsLost: (conversationId: ConversationId, count: number) => void;
}

interface RemovedAndLostEventCounts {
  /** Deleted events, delivered or not. */
  readonly events: number;
  /** Events that hooks asked for and never got, summed over the hooks. */
  readonly lostEvents: number;
}

/** A conversation, and the rev up to which its events expire. */
interface ExpiredConversation {
  readonly conversationId: ConversationId;
  readonly lastRev: Rev;
}

/**
 * Removes events that are too old or too many, delivered or not. A hook that still has to deliver some of them skips
 * them: its delivery log gets one row, and its group a notice.
 */
export async function removeExpiredEvents(pool: Pool, expiry: EventExpiry): Promise<RemovedAndLostEventCounts> {
  const removed = { events: 0, lostEvents: 0 };
  for (let after = 0 as ConversationId; ;) {
    await expiry.beforeStep();
    const page = await pool.run((sql) => findExpiryRevsByConversation(sql, after, expiry), SLOW_QUERY_TIMEOUT_MS);
    for (const { conversationId, lastRev } of page) {
      if (lastRev === null) continue;
      const conversation = { conversationId, lastRev };
      // Moves the hooks past the events before it deletes the events: if the node dies in between, the next round
      // deletes them.
      const lost = await moveHooksPastExpiredEvents(pool, conversation, expiry.beforeStep);
      if (lost > 0) expiry.onEventsLost(conversationId, lost);
      removed.lostEvents += lost;
      removed.events += await deleteEvents(pool, conversation, expiry.beforeStep);
    }
    if (page.length < CONVERSATIONS_PER_QUERY) return removed;
    after = page.at(-1)!.conversationId;
  }
}

/**
 * Finds the next conversations after `after` that have events, each with the rev up to which its events expire, or null
 * if none of them expires. The query goes from one conversation to the next by the index and does not scan the table.
 */
async function findExpiryRevsByConversation(
  sql: Sql,
  after: ConversationId,
  { writtenBefore: before, maxEvents }: EventExpiry,
): Promise<{ conversationId: ConversationId; lastRev: Rev | null }[]> {
  return sql`
    with recursive conversations (id) as (
      (select e.conversation_id from hook_event e where e.conversation_id > ${after} order by e.conversation_id limit 1)
      union all
      select (
        select e.conversation_id from hook_event e where e.conversation_id > c.id order by e.conversation_id limit 1)
      from conversations c where c.id is not null
    )
    select c.id as "conversationId", greatest(
      case when (select e.at from hook_event e where e.conversation_id = c.id order by e.rev limit 1) < ${before} then (
        select max(e.rev) from hook_event e where e.conversation_id = c.id and e.at < ${before}) end,
      (select e.rev from hook_event e where e.conversation_id = c.id order by e.rev desc offset ${maxEvents} limit 1)
    ) as "lastRev"
    from conversations c where c.id is not null limit ${CONVERSATIONS_PER_QUERY}`;
}

/** A hook and the events that it asked for and did not get. */
interface LosingHook {
  readonly id: HookId;
  readonly url: string;
  readonly count: number;
  readonly rev: Rev;
  readonly lastRev: Rev;
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
}

/**
 * Moves hooks past events that are about to be deleted. Returns how many events they lose in all. Each hook gets a
 * transaction of its own: a settlement locks several hooks in any order, so one transaction for all could deadlock with
 * it.
 */
async function moveHooksPastExpiredEvents(
  pool: Pool,
  conversation: ExpiredConversation,
  beforeStep: () => Promise<void>,
): Promise<number> {
  let lostEvents = 0;
  for (const { id } of await pool.run((sql) => findLosingHooks(sql, conversation, null), SLOW_QUERY_TIMEOUT_MS)) {
    await beforeStep();
    lostEvents += await pool.transaction((tx) => moveHookPastExpiredEvents(tx, conversation, id));
  }
  return lostEvents;
}

async function moveHookPastExpiredEvents(
  tx: Transaction,
  conversation: ExpiredConversation,
  id: HookId,
): Promise<number> {
  const { conversationId, lastRev } = conversation;
  // Locks the head first, as for every notice about a hook; then the hook, because a settlement may change which events
  // the hook loses.
  await tx`select from conversation_head where conversation_id = ${conversationId} for no key update`;
  await tx`select from reverse_hook where id = ${id} for no key update`;
  const [hook] = await findLosingHooks(tx, conversation, id);
  if (hook === undefined) return 0;
  await tx`
    update reverse_hook set event_cursor = greatest(event_cursor, ${lastRev}), generation = generation + 1, rejections = 0,
      batch_last_rev = null, unbatched_until_rev = null
    where id = ${id}`;
  await tx`delete from delivery_retry where hook_id = ${id} and rev > 0 and last_rev <= ${lastRev}`;
  await tx`update delivery_retry set rev = ${lastRev + 1} where hook_id = ${id} and rev > 0 and rev <= ${lastRev}`;
  await tx`
    insert into delivery_attempt
      (conversation_id, hook_id, seq, last_seq, rev, last_rev, attempt, at, outcome, duration_ms)
    values (${conversationId}, ${id}, ${hook.firstSeq}, ${hook.lastSeq}, ${hook.rev}, ${hook.lastRev}, 0,
      date_trunc('milliseconds', clock_timestamp()), 'expired', 0)
    on conflict do nothing`;
  const details = { hook: id, host: new URL(hook.url).hostname, events: hook.count };
  await insertNotice(tx, { conversationId, kind: 'hook_events_expired', details });
  return hook.count;
}

/**
 * Finds hooks that still have to deliver events up to `lastRev`; with `id`, only that hook. Events that a hook does not
 * deliver anyway (because of its kinds of events, its start or `skip`) do not count.
 */
async function findLosingHooks(
  sql: Sql | Transaction,
  { conversationId, lastRev }: ExpiredConversation,
  id: HookId | null,
): Promise<LosingHook[]> {
  return sql<LosingHook[]>`
    select r.id, r.url, count(*)::int as count, min(e.rev) as rev, max(e.rev) as "lastRev",
      (array_agg(e.seq order by e.rev))[1] as "firstSeq", (array_agg(e.seq order by e.rev desc))[1] as "lastSeq"
    from reverse_hook r
    join conversation_head h on h.conversation_id = r.conversation_id
    join hook_event e on e.conversation_id = r.conversation_id and e.rev <= ${lastRev} and e.seq >= h.first_seq
    join account a on a.id = e.actor_id
    where r.conversation_id = ${conversationId} and r.events <> '{}' and r.removed_at is null
      and (${id}::bigint is null or r.id = ${id}::bigint) and e.rev > r.event_start_rev and e.seq > r.start_seq and e.kind = any(r.events)
      and (a.kind = 'user' or a.kind <> all(r.skip))
      and (e.rev > r.event_cursor or exists (
        select from delivery_retry d where d.hook_id = r.id and d.rev > 0 and e.rev between d.rev and d.last_rev))
    group by r.id, r.url order by r.id`;
}

async function deleteEvents(
  pool: Pool,
  { conversationId, lastRev }: ExpiredConversation,
  beforeStep: () => Promise<void>,
): Promise<number> {
  for (let total = 0; ;) {
    await beforeStep();
    const { count } = await pool.run(
      (sql) => sql`
        delete from hook_event where conversation_id = ${conversationId} and rev in (
          select rev from hook_event where conversation_id = ${conversationId} and rev <= ${lastRev}
          order by rev limit ${DELETE_PAGE_ROWS})`,
    );
    total += count;
    if (count < DELETE_PAGE_ROWS) return total;
  }
}
