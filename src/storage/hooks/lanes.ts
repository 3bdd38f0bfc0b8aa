import type { Attachment } from '../../model/attachment.ts';
import type { ChangeEventKind } from '../../model/change-event.ts';
import type { HookFilter, HookFormat } from '../../model/hook-format.ts';
import type { ConversationId, HookId, LogEpoch, Rev, Seq } from '../../model/ids.ts';
import type { MessageCard } from '../../model/message-card.ts';
import type { SenderKind } from '../../model/roles.ts';
import type { Sql } from '../db/connection.ts';
import { messageBytes } from '../messages/messages.ts';
import type { HookOrder, HookSignature } from './hooks.ts';

/**
 * The number of partitions. A hook belongs to the partition with the number `id % PARTITIONS`; the table `lease` has a
 * row for each partition.
 */
export const PARTITIONS = 64;

/** The columns of a hook's row that its lane needs to deliver. */
export interface LaneRow extends HookFilter {
  readonly id: HookId;
  readonly conversationId: ConversationId;
  readonly url: string;
  readonly format: HookFormat;
  readonly order: HookOrder;
  readonly batch: number;
  readonly signature: HookSignature;
  readonly secretSealed: string;
  readonly oldSecretSealed: string | null;
  readonly oldSecretUntil: Date | null;
  readonly startAfterSeq: Seq;
  readonly cursor: Seq;
  readonly events: readonly ChangeEventKind[];
  /** Null in a hook that asks for no events; so is `eventCursor`. */
  readonly eventStartAfterRev: Rev | null;
  readonly eventCursor: Rev | null;
  readonly generation: number;
  readonly pausedAt: Date | null;
  readonly failures: number;
  readonly failingSince: Date | null;
  readonly parkedAt: Date | null;
  readonly nextAttemptAt: Date | null;
  readonly rejections: number;
  readonly batchLastSeq: Seq | null;
  readonly unbatchedUntil: Seq | null;
  readonly batchLastRev: Rev | null;
  readonly unbatchedUntilRev: Rev | null;
  /** The number of the hook's retry rows; `earliestRetryAt` is when the first of them is due. */
  readonly retries: number;
  readonly earliestRetryAt: Date | null;
  /** True: a retention rule removed messages that the hook still had to deliver. The lane has to skip them first. */
  readonly hasRemovedBacklog: boolean;
  /** The conversation's newest seq when the row was read. */
  readonly lastSeq: Seq;
  /** True: there are events after the hook's event cursor. */
  readonly hasPendingEvents: boolean;
}

/** Columns of a LaneRow from `reverse_hook r`, `conversation_head h` and the aggregated retry rows `d`. */
const laneColumns = (sql: Sql) => sql`
  r.id, r.conversation_id as "conversationId", r.url, r.format, r.ordering as "order", r.batch, r.signature,
  to_json(r.skip) as skip, to_json(r.triggers) as triggers, r.max_age as "maxAgeS",
  r.secret_sealed as "secretSealed", r.old_secret_sealed as "oldSecretSealed", r.old_secret_until as "oldSecretUntil",
  r.start_seq as "startAfterSeq", r.cursor, to_json(r.events) as events, r.event_start_rev as "eventStartAfterRev",
  r.event_cursor as "eventCursor", r.batch_last_rev as "batchLastRev", r.unbatched_until_rev as "unbatchedUntilRev",
  case when r.event_cursor is null then false else exists (
    select from hook_event e where e.conversation_id = r.conversation_id and e.rev > r.event_cursor
  ) end as "hasPendingEvents", r.generation, r.paused_at as "pausedAt", r.failures, r.failing_since as "failingSince",
  r.parked_at as "parkedAt", r.next_attempt_at as "nextAttemptAt", r.rejections, r.batch_last_seq as "batchLastSeq",
  r.unbatched_until as "unbatchedUntil", d.retries, d.retry_at as "earliestRetryAt",
  least(r.cursor + 1, d.first_seq) < h.first_seq as "hasRemovedBacklog", h.last_seq as "lastSeq"`;

/** All hooks of these conversations that are not removed, with or without pending messages. */
export async function lanesOfConversations(sql: Sql, ids: readonly ConversationId[]): Promise<LaneRow[]> {
  return sql<LaneRow[]>`
    select ${laneColumns(sql)} from reverse_hook r join conversation_head h on h.conversation_id = r.conversation_id
    cross join lateral (
      select count(*)::int as retries, min(next_at) as retry_at, min(seq) filter (where rev = 0) as first_seq
      from delivery_retry where hook_id = r.id) d
    where r.conversation_id = any(${[...ids]}::bigint[]) and r.removed_at is null`;
}

/** The part of the hooks that one query of a sweep examines. */
export interface SweepPageRequest {
  readonly partitions: readonly number[];
  /** Only conversations with a greater id than this one. */
  readonly after: number;
  readonly limit: number;
  /** True: only conversations that advanced within the last minute. */
  readonly onlyRecent: boolean;
}

/**
 * Finds conversations with a hook in these partitions that has pending messages, in id order. All pages together read
 * each head and hook once: 70 ms for 100,000 of both, and 8 ms with `onlyRecent` when no conversation advanced in the
 * last minute. For that the query compares the ids of both tables with `after`: PostgreSQL does not derive one bound
 * from the other, and would reread all hooks for each page. It uses `now()`, which the planner can compare with its
 * statistics, unlike `clock_timestamp()`.
 */
export async function conversationsWithPendingMessages(sql: Sql, page: SweepPageRequest): Promise<ConversationId[]> {
  const rows = await sql<{ id: ConversationId }[]>`
    select distinct h.conversation_id as id
    from conversation_head h join reverse_hook r on r.conversation_id = h.conversation_id
    where ${page.onlyRecent ? sql`h.last_at > now() - interval '1 minute' and` : sql``}
      r.removed_at is null and r.cursor < h.last_seq and h.conversation_id > ${page.after}
      and r.conversation_id > ${page.after} and r.id % ${PARTITIONS} = any(${[...page.partitions]}::int[])
    order by h.conversation_id limit ${page.limit}`;
  return rows.map((row) => row.id);
}

/**
 * Like `conversationsWithPendingMessages`, for events. An index covers the hooks that ask for events. A conversation is
 * recent when it has an event of the last minute.
 */
export async function conversationsWithPendingEvents(sql: Sql, page: SweepPageRequest): Promise<ConversationId[]> {
  const rows = await sql<{ id: ConversationId }[]>`
    select distinct r.conversation_id as id
    from reverse_hook r
    cross join lateral (
      select e.rev, e.at from hook_event e where e.conversation_id = r.conversation_id order by e.rev desc limit 1) e
    where r.events <> '{}' and r.removed_at is null and e.rev > r.event_cursor and r.conversation_id > ${page.after}
      ${page.onlyRecent ? sql`and e.at > now() - interval '1 minute'` : sql``}
      and r.id % ${PARTITIONS} = any(${[...page.partitions]}::int[])
    order by r.conversation_id limit ${page.limit}`;
  return rows.map((row) => row.id);
}

/**
 * Finds conversations with a hook in these partitions that has retry rows, in id order. The lane of such a hook stays
 * in memory until no retry row is left, so callers need this only for partitions that they took over.
 */
export async function conversationsWithRetryRows(
  sql: Sql,
  page: Pick<SweepPageRequest, 'partitions' | 'after' | 'limit'>,
): Promise<ConversationId[]> {
  const rows = await sql<{ id: ConversationId }[]>`
    select distinct r.conversation_id as id
    from (select distinct hook_id from delivery_retry) d join reverse_hook r on r.id = d.hook_id
    where r.removed_at is null and r.conversation_id > ${page.after}
      and r.id % ${PARTITIONS} = any(${[...page.partitions]}::int[])
    order by r.conversation_id limit ${page.limit}`;
  return rows.map((row) => row.id);
}

/** A message as a delivery carries it. */
export interface DeliveryMessage {
  readonly seq: Seq;
  /** The log epoch in which the message was written. */
  readonly logEpoch: LogEpoch;
  /** The rev of the change that produced this state of the message. */
  readonly rev: Rev;
  /**
   * The log epoch of the change `rev`. If the change was made in an epoch between the message's and the conversation's
   * newest one, this value is the message's epoch instead.
   */
  readonly revLogEpoch: LogEpoch;
  readonly text: string;
  readonly hops: number;
  readonly sentAt: Date;
  readonly deliveredAsDeleted: boolean;
  /** Null: the message has no attachments. */
  readonly attachments: readonly Attachment[] | null;
  /** Null: the message has no cards. */
  readonly cards: readonly MessageCard[] | null;
  readonly title: string;
  readonly senderId: number;
  readonly senderName: string;
  readonly senderNick: string | null;
  readonly senderKind: SenderKind;
  /** The name and the picture that the post gave for itself; null: it gave none. */
  readonly label: string | null;
  readonly iconUrl: string | null;
}

/** The columns of a delivery from message `m`, its sender `a` and its group `c` with its head `h`. */
export const deliveryMessageColumns = (sql: Sql) => sql`
  m.seq, m.epoch as "logEpoch", m.rev, case when m.rev > h.epoch_rev then h.epoch else m.epoch end as "revLogEpoch", case when m.deleted_at is null then m.text else '' end as text, m.sent_at as "sentAt",
  m.deleted_at is not null as "deliveredAsDeleted", m.attachments, m.cards, m.label, m.icon_url as "iconUrl", c.title, a.id as "senderId", a.name as "senderName",
  a.nick as "senderNick", a.kind as "senderKind"`;

/** The range of a read: messages of a conversation after a seq. */
interface MessageRangeRequest {
  readonly conversationId: ConversationId;
  readonly after: Seq;
  /** The maximum number of messages. */
  readonly limit: number;
}

/**
 * Reads the next messages at each position, in seq order. A message is taken only while the texts, attachments and
 * cards before it have less than `maxBytes`, so at least one is taken. If the next message was removed, the answer
 * begins with the first one that was not. The answers are in the order of the positions.
 */
export async function readDeliveryMessages(
  sql: Sql,
  positions: readonly MessageRangeRequest[],
  maxBytes: number,
): Promise<DeliveryMessage[][]> {
  const rows = await sql<(DeliveryMessage & { rangeOrdinal: number })[]>`
    select h.ord::int as "rangeOrdinal", m.hops, ${deliveryMessageColumns(sql)}
    from (
      select p.ord, p.conversation_id, p.count, greatest(p.after, h.first_seq - 1) as after, h.epoch, h.epoch_rev
      from unnest(${positions.map((p) => p.conversationId)}::bigint[], ${positions.map((p) => p.after)}::bigint[],
        ${positions.map((p) => p.limit)}::int[]) with ordinality as p(conversation_id, after, count, ord)
      join conversation_head h on h.conversation_id = p.conversation_id
    ) h
    join conversation c on c.id = h.conversation_id
    cross join lateral (
      select n.*, sum(n.bytes) over (order by n.seq) - n.bytes as bytes_before from (
        -- Seqs have no gaps, so this condition works as a limit, which may differ for each position.
        select m.*, ${messageBytes(sql)} as bytes from message m where conversation_id = h.conversation_id and seq > h.after and seq <= h.after + h.count
      ) n
    ) m
    join account a on a.id = m.sender_id
    where m.bytes_before < ${maxBytes}
    order by h.ord, m.seq`;
  const answers: DeliveryMessage[][] = positions.map(() => []);
  for (const { rangeOrdinal, ...message } of rows) answers[rangeOrdinal - 1]!.push(message);
  return answers;
}
