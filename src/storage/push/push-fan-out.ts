import type { DeviceKind } from '../../model/device.ts';
import type { AccountId, ConversationId, Seq } from '../../model/ids.ts';
import { mentionsOf } from '../../model/mentions.ts';
import type { Sql, Transaction } from '../db/connection.ts';
import type { Pool } from '../db/pool.ts';

/**
 * The maximum number of messages that one transaction examines, in all its conversations together, and of bytes in
 * texts that may mention somebody.
 */
const MAX_BATCH_MESSAGES = 2_000;
const MAX_BATCH_BYTES = 1024 * 1024;
/**
 * The limit of messages for each conversation of a transaction is at least this number. With a lower limit, a
 * notification about many conversations would take too many transactions.
 */
const MIN_MESSAGES_PER_CONVERSATION = 20;
/** The time-out of a transaction: enough for thousands of devices on a busy machine. */
const TRANSACTION_TIMEOUT_MS = 30_000;

/** Whether any device is registered. */
export async function hasDevices(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ present: boolean }[]>`select exists (select from device) as present`;
  return row!.present;
}

/**
 * A page of conversations, sorted by id, after `afterId`: those whose newest message is no older than `maxAgeMs`
 * and was not fanned out yet.
 */
export async function findUnpushedConversations(
  sql: Sql,
  page: { afterId: number; limit: number; maxAgeMs: number },
): Promise<ConversationId[]> {
  const rows = await sql<{ id: ConversationId }[]>`
    select h.conversation_id as id
    from conversation_head h left join push_cursor c on c.conversation_id = h.conversation_id
    where h.conversation_id > ${page.afterId} and h.last_seq > coalesce(c.pushed_seq, 0)
      and h.last_at > now() - ${page.maxAgeMs} * interval '1 millisecond'
    order by h.conversation_id limit ${page.limit}`;
  return rows.map(({ id }) => id);
}

interface FanOutRules {
  /** The kinds of devices that get pushes. */
  readonly kindsToNotify: readonly DeviceKind[];
  /** Accounts whose pushes wait for `foregroundDelayMs`, since their apps show new messages at once. */
  readonly foregroundAccounts: readonly AccountId[];
  readonly foregroundDelayMs: number;
  /** Messages that are older than this cause no pushes. */
  readonly maxAgeMs: number;
}

/** The result of a fan-out. */
interface FanOutRun {
  /** The number of pending pushes that were inserted or extended. */
  readonly writtenPushes: number;
  /** Conversations with more messages to fan out. */
  readonly conversationsWithMore: readonly ConversationId[];
}

/**
 * Turns the next messages of these conversations into at most one pending push for each device and conversation. The
 * same transaction moves the cursors: however a process ends, no message is left out or handled twice. A node that
 * handles the same conversations at the same time waits, and finds nothing left to do.
 */
export function fanOut(pool: Pool, conversations: readonly ConversationId[], rules: FanOutRules): Promise<FanOutRun> {
  return pool.transaction(async (tx) => {
    const behind = await lockLaggingCursors(tx, conversations);
    if (behind.length === 0) return { writtenPushes: 0, conversationsWithMore: [] };
    let newMessages = await readNewMessages(tx, behind, rules.maxAgeMs);
    // A cursor is far behind, for instance after an old installation got its first device: the fan-out skips messages
    // that are too old for a push.
    if (newMessages.some(({ old }) => old)) {
      newMessages = await readNewMessages(tx, await findStartAfterTooOld(tx, behind, rules.maxAgeMs), rules.maxAgeMs);
    }
    const taken = newMessages.filter(({ mentionTextBytesBefore }) => mentionTextBytesBefore < MAX_BATCH_BYTES);
    const writtenPushes = await upsertPendingPushes(tx, taken, rules);
    // If no message of a conversation was read, all are too old, and its cursor moves to the head. A conversation whose
    // messages did not fit into the batch keeps its cursor.
    const reachedSeqOrUnmoved = new Map<ConversationId, Seq | null>(behind.map(({ id, head }) => [id, head]));
    for (const { conversationId } of newMessages) reachedSeqOrUnmoved.set(conversationId, null);
    for (const { conversationId, seq } of taken) reachedSeqOrUnmoved.set(conversationId, seq);
    await advanceCursors(tx, reachedSeqOrUnmoved);
    return {
      writtenPushes: writtenPushes,
      conversationsWithMore: behind
        .filter(({ id, head }) => (reachedSeqOrUnmoved.get(id) ?? 0) < head)
        .map(({ id }) => id),
    };
  }, TRANSACTION_TIMEOUT_MS);
}

/** A conversation with messages after its cursor. */
interface LaggingConversation {
  readonly id: ConversationId;
  readonly after: Seq;
  readonly head: Seq;
}

async function lockLaggingCursors(
  tx: Transaction,
  conversations: readonly ConversationId[],
): Promise<readonly LaggingConversation[]> {
  const ids = [...conversations];
  await tx`
    insert into push_cursor (conversation_id, pushed_seq)
    select h.conversation_id, 0 from conversation_head h
    where h.conversation_id = any(${ids}::bigint[])
      and not exists (select from push_cursor c where c.conversation_id = h.conversation_id)
      -- An asynchronous commit: the fan-out repeats what a crash of the machine undoes.
      and set_config('synchronous_commit', 'off', true) = 'off'
    order by h.conversation_id
    on conflict do nothing`;
  return tx<LaggingConversation[]>`
    select c.conversation_id as id, greatest(c.pushed_seq, h.first_seq - 1) as after, h.last_seq as head
    from push_cursor c join conversation_head h on h.conversation_id = c.conversation_id
    where c.conversation_id = any(${ids}::bigint[]) and c.pushed_seq < h.last_seq
      and set_config('synchronous_commit', 'off', true) = 'off'
    order by c.conversation_id for update of c`;
}

interface NewMessage {
  readonly conversationId: ConversationId;
  readonly seq: Seq;
  readonly senderId: AccountId;
  readonly sentAt: Date;
  /** Whether the message is too old to cause a push. */
  readonly old: boolean;
  readonly deleted: boolean;
  /** Null for a deleted message, and for a text without `@`. */
  readonly text: string | null;
  /** The total bytes of `text` in all messages before this one. */
  readonly mentionTextBytesBefore: number;
}

function readNewMessages(
  tx: Transaction,
  behind: readonly LaggingConversation[],
  maxAgeMs: number,
): Promise<NewMessage[]> {
  const limit = Math.max(MIN_MESSAGES_PER_CONVERSATION, Math.floor(MAX_BATCH_MESSAGES / behind.length));
  return tx<NewMessage[]>`
    select b.id as "conversationId", m.seq, m.sender_id as "senderId", m.sent_at as "sentAt", m.deleted, m.text,
      m.sent_at < now() - ${maxAgeMs} * interval '1 millisecond' as old,
      coalesce(sum(octet_length(m.text)) over (
        order by b.ord, m.seq rows between unbounded preceding and 1 preceding), 0)::bigint as "mentionTextBytesBefore"
    from unnest(
      ${behind.map(({ id }) => id)}::bigint[], ${behind.map(({ after }) => after)}::bigint[],
      ${behind.map(({ head }) => head)}::bigint[]
    ) with ordinality as b(id, after, head, ord)
    cross join lateral (
      select seq, sender_id, sent_at, deleted_at is not null as deleted,
        case when deleted_at is null and position('@' in text) > 0 then text end as text
      from message where conversation_id = b.id and seq > b.after and seq <= b.head order by seq limit ${limit}
    ) m
    order by b.ord, m.seq`;
}

/**
 * The conversations, each starting after its last message that is too old for a push. A binary search finds that
 * message, since times rise with seqs.
 */
async function findStartAfterTooOld(
  tx: Transaction,
  behind: readonly LaggingConversation[],
  maxAgeMs: number,
): Promise<readonly LaggingConversation[]> {
  return tx<LaggingConversation[]>`
    with recursive search(id, low, high, head) as (
      select b.id, b.after, b.head + 1, b.head
      from unnest(
        ${behind.map(({ id }) => id)}::bigint[], ${behind.map(({ after }) => after)}::bigint[],
        ${behind.map(({ head }) => head)}::bigint[]
      ) as b(id, after, head)
      union all
      select s.id, case when m.old then s.middle else s.low end, case when m.old then s.high else s.middle end, s.head
      from (select id, low, high, head, (low + high) / 2 as middle from search where high - low > 1) s
      cross join lateral (
        select sent_at < now() - ${maxAgeMs} * interval '1 millisecond' as old
        from message where conversation_id = s.id and seq = s.middle
      ) m
    )
    select id, low as after, head from search where high - low <= 1 and low < head order by id`;
}

/**
 * One sender's new messages in a conversation, as one range. The last message of the range decides which accounts it
 * may concern.
 */
interface SenderMessageRange {
  readonly conversationId: ConversationId;
  readonly senderId: AccountId;
  /** The range covers only the messages that mention this nick; null: all messages of the sender. */
  readonly nick: string | null;
  /**
   * The first seq of the new messages of all senders in the conversation; with `nick`, of those that mention it. The
   * send step leaves out messages that are not for the recipient.
   */
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  readonly lastAt: Date;
  /** The rank among the ranges with the same conversation and nick: 1 is the newest range. */
  readonly newestFirstRank: number;
}

function messageRangesBySenderAndMention(messages: readonly NewMessage[]): SenderMessageRange[] {
  const firstSeqByKey = new Map<string, Seq>();
  const senderRanges = new Map<string, SenderMessageRange>();
  const extend = ({ conversationId, senderId, seq, sentAt }: NewMessage, nick: string | null): void => {
    const conversationNickKey = `${conversationId}:${nick ?? ''}`;
    const firstSeq = firstSeqByKey.get(conversationNickKey) ?? seq;
    firstSeqByKey.set(conversationNickKey, firstSeq);
    const key = `${conversationNickKey}:${senderId}`;
    // The deletion moves the key to the end: so the map has the order of the last messages of the ranges.
    senderRanges.delete(key);
    senderRanges.set(key, {
      conversationId,
      senderId,
      nick,
      firstSeq,
      lastSeq: seq,
      lastAt: sentAt,
      newestFirstRank: 0,
    });
  };
  for (const message of messages) {
    if (message.deleted || message.old) continue;
    extend(message, null);
    for (const nick of mentionsOf(message.text ?? '')) extend(message, nick);
  }
  return withNewestFirstRanks([...senderRanges.values()].reverse());
}

function withNewestFirstRanks(senderRanges: readonly SenderMessageRange[]): SenderMessageRange[] {
  const rangeCounts = new Map<string, number>();
  return senderRanges.map((senderRange) => {
    const conversationNickKey = `${senderRange.conversationId}:${senderRange.nick ?? ''}`;
    const newestFirstRank = (rangeCounts.get(conversationNickKey) ?? 0) + 1;
    rangeCounts.set(conversationNickKey, newestFirstRank);
    return { ...senderRange, newestFirstRank };
  });
}

/**
 * The ranges as a table `w`. The statement uses one such table for ranges without a nick, and another for ranges with
 * one. From a condition that separates them in one table, the planner would expect few rows.
 */
function senderRangeRows(tx: Transaction, senderRanges: readonly SenderMessageRange[]): ReturnType<Transaction> {
  return tx`
    unnest(
      ${senderRanges.map((each) => each.conversationId)}::bigint[], ${senderRanges.map((each) => each.senderId)}::bigint[],
      ${senderRanges.map((each) => each.nick)}::text[], ${senderRanges.map((each) => each.firstSeq)}::bigint[],
      ${senderRanges.map((each) => each.lastSeq)}::bigint[], ${senderRanges.map((each) => each.lastAt.toISOString())}::timestamptz[],
      ${senderRanges.map(({ newestFirstRank }) => newestFirstRank)}::int[]
    ) as w(conversation_id, sender_id, nick, first_seq, last_seq, last_at, rank)`;
}

/**
 * Writes the pending pushes in one statement, however many messages and devices there are. The statement looks up the
 * devices of a conversation's members once, and compares them with the conversation's two newest ranges. At least one
 * of the two is by a sender other than the member, and that range decides. Only for members who have blocked an account
 * the statement compares all ranges (500 senders and 1,000 devices took 3 s when it did so for everybody).
 */
async function upsertPendingPushes(
  tx: Transaction,
  messages: readonly NewMessage[],
  rules: FanOutRules,
): Promise<number> {
  const senderRanges = messageRangesBySenderAndMention(messages);
  if (senderRanges.length === 0) return 0;
  const conversations = [...new Set(senderRanges.map(({ conversationId }) => conversationId))];
  const toAll = senderRanges.filter(({ nick }) => nick === null);
  const mentioning = senderRanges.filter(({ nick }) => nick !== null);
  const rows = await tx`
    with written as (select * from ${senderRangeRows(tx, toAll)}), mention as (
      -- With offset 0, PostgreSQL runs this join once, and not for each device.
      select w.*, a.id as account_id from ${senderRangeRows(tx, mentioning)} join account a on a.nick = w.nick offset 0
    ), listener as (
      select m.conversation_id, m.account_id, m.read_seq,
        -- A boolean: the planner expects that half of the rows match it. From a comparison of texts it expects one row.
        coalesce(s.level, 'all') = 'all' as wants_all,
        exists (select from block b where b.account_id = m.account_id) as blocks,
        m.account_id in (select * from unnest(${[...rules.foregroundAccounts]}::bigint[])) as watches
      from membership m
      left join notification_setting s on s.conversation_id = m.conversation_id and s.account_id = m.account_id
      where m.conversation_id = any(${conversations}::bigint[])
        and coalesce(s.level, 'all') <> 'nothing' and (s.muted_until is null or s.muted_until <= now())
    ), target as (
      -- An array: the planner expects ten elements in it, and uses the index however many devices there are.
      select id as device_id, kind, created_at, account_id as owner_id from device
      where account_id = any(array(select account_id from listener)) and kind = any(${[...rules.kindsToNotify]}::text[])
    ), audience as (
      -- A full join, though each device has a listener: PostgreSQL never runs a full join as a nested loop. The
      -- condition after it must not let the planner replace it by another kind of join.
      select * from listener l full join target d on d.owner_id = l.account_id where coalesce(d.device_id, 0) <> 0
    ), concerned as (
      select a.*, w.sender_id, w.first_seq, w.last_seq, w.last_at
      from audience a join written w on w.conversation_id = a.conversation_id
      where a.wants_all and (w.rank <= 2 or a.blocks)
      union all
      select a.*, w.sender_id, w.first_seq, w.last_seq, w.last_at
      from audience a join mention w on w.conversation_id = a.conversation_id and w.account_id = a.account_id
      where not a.wants_all
    )
    insert into push_pending (device_id, conversation_id, kind, first_seq, last_seq, created_at, next_at)
    select c.device_id, c.conversation_id, c.kind, min(greatest(c.first_seq, c.read_seq + 1)), max(c.last_seq),
      min(c.last_at), now() + case when bool_or(c.watches) then ${rules.foregroundDelayMs}::int else 0 end * interval '1 millisecond'
    from concerned c
    where c.sender_id <> c.account_id and c.read_seq < c.last_seq
      -- last_at has only whole milliseconds.
      and c.created_at < c.last_at + interval '1 millisecond'
      and not (c.blocks and exists (
        select from block b where b.account_id = c.account_id and b.blocked_id = c.sender_id))
    group by c.device_id, c.conversation_id, c.kind
    order by c.device_id, c.conversation_id
    on conflict (device_id, conversation_id) do update
    set last_seq = greatest(push_pending.last_seq, excluded.last_seq),
      -- The earlier time, since the account may have left the foreground; a push that has failed keeps its retry time.
      next_at = case when push_pending.attempts = 0 then least(push_pending.next_at, excluded.next_at)
        else push_pending.next_at end`;
  return rows.count;
}

async function advanceCursors(
  tx: Transaction,
  reachedSeqOrUnmoved: ReadonlyMap<ConversationId, Seq | null>,
): Promise<void> {
  const moved = [...reachedSeqOrUnmoved].filter(([, seq]) => seq !== null);
  await tx`
    update push_cursor c set pushed_seq = n.seq
    from unnest(${moved.map(([id]) => id)}::bigint[], ${moved.map(([, seq]) => seq)}::bigint[]) as n(id, seq)
    where c.conversation_id = n.id`;
}
