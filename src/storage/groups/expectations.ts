import type { AccountId, ConversationId, Seq } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';
import { dueAtIntakeClockMs, intakeClockMs, signOfLifeAssignments } from '../messages/signs-of-life.ts';
import { writePosts, type Post } from '../messages/write-posts.ts';
import { lockGroup } from './groups.ts';

/** An expectation of a group. */
export interface Expectation {
  readonly key: string;
  readonly withinS: number;
  readonly isOverdue: boolean;
  /** Time of the last post with the key; null: no post since the expectation was set. */
  readonly lastPostAt: Date | null;
  readonly setAt: Date;
  /**
   * The time at which the expectation becomes overdue, if no post comes and nodes can accept posts until then. Null: it
   * is overdue already, or its group is archived.
   */
  readonly dueAt: Date | null;
}

/** The expectations of a group in the order of their keys; with `onlyKey`, the one with this key. */
export async function listExpectations(
  sql: Sql | Transaction,
  conversationId: ConversationId,
  onlyKey: string | null = null,
): Promise<Expectation[]> {
  return (sql as Sql)<Expectation[]>`
    select e.key, e.within_s as "withinS", e.state = 'overdue' as "isOverdue", e.last_post_at as "lastPostAt",
      e.set_at as "setAt", case when e.state <> 'overdue' and h.archived_at is null
        then now() + greatest(e.due_ms - ${intakeClockMs(sql)}, 0) * interval '1 millisecond' end as "dueAt"
    from expectation e join conversation_head h on h.conversation_id = e.conversation_id
    where e.conversation_id = ${conversationId} and (${onlyKey}::text is null or e.key = ${onlyKey}) order by e.key`;
}

/**
 * The time in seconds in which the group expects a post with this key; null: the group has no expectation with this
 * key.
 */
export async function findExpectedWithinS(
  sql: Sql,
  conversationId: ConversationId,
  key: string,
): Promise<number | null> {
  const [row] = await sql<{ withinS: number }[]>`
    select within_s as "withinS" from expectation where conversation_id = ${conversationId} and key = ${key}`;
  return row?.withinS ?? null;
}

/**
 * Sets an expectation of a group; the caller holds the lock of the group's head. The time of a new expectation, or of
 * one with another duration, starts now; an overdue expectation stays overdue until a post comes. `full`: the key is
 * new, and the group has `maxExpectations` expectations already.
 */
export async function setExpectation(
  tx: Transaction,
  conversationId: ConversationId,
  { key, withinS, max: maxExpectations }: { key: string; withinS: number; max: number },
): Promise<'set' | 'unchanged' | 'full'> {
  const [known] = await tx<{ withinS: number | null; count: number }[]>`
    select max(within_s) filter (where key = ${key}) as "withinS", count(*) filter (where key <> ${key}) as count
    from expectation where conversation_id = ${conversationId}`;
  const { withinS: knownS, count } = known!;
  if (knownS === withinS) return 'unchanged';
  if (knownS === null && count >= maxExpectations) return 'full';
  await tx`
    insert into expectation (conversation_id, key, within_s) values (${conversationId}, ${key}, ${withinS})
    on conflict (conversation_id, key) do update set within_s = excluded.within_s`;
  await tx`
    update expectation e set due_ms = ${dueAtIntakeClockMs(tx)} where e.conversation_id = ${conversationId} and e.key = ${key}`;
  return 'set';
}

/** Removes an expectation of a group; the caller holds the lock of the group's head. False: there is none. */
export async function deleteExpectation(
  tx: Transaction,
  conversationId: ConversationId,
  expectationKey: string,
): Promise<boolean> {
  const { count } =
    await tx`delete from expectation where conversation_id = ${conversationId} and key = ${expectationKey}`;
  return count > 0;
}

/**
 * Restarts the time of all expectations that are not overdue: it counts from now. The caller holds the lock of the
 * group's head.
 */
export async function restartExpectations(tx: Transaction, conversationId: ConversationId): Promise<void> {
  await tx`
    update expectation e set due_ms = ${dueAtIntakeClockMs(tx)}
    where e.conversation_id = ${conversationId} and e.state <> 'overdue'`;
}

/**
 * Records a sign of life (of a program that the group expects posts from) without posting a message. It does nothing if
 * the token is not the group's, or the group is archived.
 */
export async function recordSignOfLife(
  tx: Transaction,
  { conversationId, tokenHash }: { conversationId: ConversationId; tokenHash: string },
  expectationKey: string,
): Promise<void> {
  const head = await lockGroup(tx, conversationId);
  if (head === null || head.archived) return;
  await tx`
    update expectation e set ${signOfLifeAssignments(tx)}
    where e.conversation_id = ${conversationId} and e.key = ${expectationKey} and exists (
      select from integration t where t.conversation_id = e.conversation_id and t.token_hash = ${tokenHash})`;
}

/** The content of a message about an expectation, which the group's webhook posts. */
export interface ExpectationNews {
  readonly kind: 'overdue' | 'returned';
  readonly key: string;
  readonly withinS: number;
  /** The time of the last post with the key, or if there is none, the time at which the expectation was set. */
  readonly since: Date;
}

/** One query reads at most this many expectations that became overdue, and as many that returned. */
const MAX_DUE_EXPECTATIONS = 1_000;

/**
 * Conversations with expectations to report: first those that became overdue (earliest first), then those that
 * returned, which means that a post came after all.
 */
export async function findGroupsWithExpectationNews(sql: Sql): Promise<ConversationId[]> {
  const rows = await sql<{ id: ConversationId }[]>`
    (select e.conversation_id as id from expectation e
      where e.state = 'waiting' and e.due_ms <= ${intakeClockMs(sql)}
      order by e.due_ms limit ${MAX_DUE_EXPECTATIONS})
    union all
    (select e.conversation_id as id from expectation e where e.state = 'returned' limit ${MAX_DUE_EXPECTATIONS})`;
  return [...new Set(rows.map(({ id }) => id))];
}

/**
 * Posts messages to a group about its overdue and returned expectations; the sender is the account of the group's
 * webhook. Messages and states are written together or not at all, and under the head's lock each message is posted
 * once, however many nodes try. Resolves with the seq of the last message; null: nothing was posted. An archived group
 * gets no messages, and its expectations begin to wait again when it is unarchived.
 */
export async function postExpectationNews(
  tx: Transaction,
  conversationId: ConversationId,
  toText: (news: ExpectationNews) => string,
): Promise<Seq | null> {
  const head = await lockGroup(tx, conversationId);
  if (head === null) return null;
  const news = await tx<ExpectationNews[]>`
    select case e.state when 'waiting' then 'overdue' else 'returned' end as kind, e.key, e.within_s as "withinS",
      coalesce(e.last_post_at, e.set_at) as since
    from expectation e
    where e.conversation_id = ${conversationId}
      and (e.state = 'returned' or (e.state = 'waiting' and e.due_ms <= ${intakeClockMs(tx)}))
    order by e.due_ms, e.key for no key update`;
  if (news.length === 0) return null;
  const keys = news.map(({ key }) => key);
  if (head.archived) {
    await tx`
      update expectation set state = 'waiting', due_ms = null
      where conversation_id = ${conversationId} and key = any(${keys}::text[])`;
    return null;
  }
  await tx`
    update expectation set state = case state when 'waiting' then 'overdue' else 'waiting' end
    where conversation_id = ${conversationId} and key = any(${keys}::text[])`;
  const [sender] = await tx<{ accountId: AccountId; admission: string }[]>`
    select account_id as "accountId", coalesce(admission, token_hash) as admission from integration where conversation_id = ${conversationId}`;
  if (sender === undefined) return null;
  const posts = news.map((each) => createNewsPost({ ...sender, conversationId }, toText(each)));
  const written = (await writePosts(tx as unknown as Sql, posts)).at(-1)!;
  if (written.outcome !== 'new') throw new Error(`a line about an expectation was not written: ${written.outcome}`);
  return written.seq;
}

function createNewsPost(
  sender: { conversationId: ConversationId; accountId: AccountId; admission: string },
  text: string,
): Post {
  const { conversationId, accountId: senderId, admission } = sender;
  const emptyPostFields = {
    cardsJson: null,
    label: null,
    iconUrl: null,
    hops: 0,
    attachments: [],
    key: null,
    bodyHash: null,
  };
  return { ...emptyPostFields, conversationId, senderId, admission, text };
}

/** The number of overdue expectations in groups that are not archived. */
export async function countOverdueExpectations(sql: Sql): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(*) as count from expectation e join conversation_head h on h.conversation_id = e.conversation_id
    where e.state = 'overdue' and h.archived_at is null`;
  return row!.count;
}

/**
 * Advances the intake clock, which counts only time in which some node could take posts. It advances by the time since
 * its last advance, but at most by `openMs`: the time for which this node has accepted posts without a break. Several
 * nodes may call it: none counts time that another has counted. Writes nothing where no group has an expectation.
 */
export async function advanceIntakeClock(sql: Sql, openMs: number): Promise<void> {
  await sql`
    insert into intake_clock as c (open_ms, advanced_at)
    select 0, clock_timestamp() where exists (select from expectation)
    on conflict (is_only_row) do update set advanced_at = clock_timestamp(), open_ms = c.open_ms
      + greatest(0, least(${openMs}::bigint, extract(epoch from clock_timestamp() - c.advanced_at) * 1000))::bigint`;
}
