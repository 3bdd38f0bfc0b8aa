import type { Attachment } from '../../model/attachment.ts';
import type { ChangeEventKind } from '../../model/change-event.ts';
import type { AccountId, ConversationId, LogEpoch, Rev, Seq } from '../../model/ids.ts';
import type { MessageCard } from '../../model/message-card.ts';
import type { GroupRole, SenderKind } from '../../model/roles.ts';
import type { StoredMessage } from './changes.ts';
import { noteRev } from '../db/committed-revs.ts';
import type { Fragment, Sql, Transaction } from '../db/connection.ts';
import { markMessageFilesRemoved } from './attachments.ts';
import { insertHookEvent, type ChangeOrigin } from './insert-hook-event.ts';
import { epochBoundaryColumns, logEpochCte, stampHeadEpoch, type EpochBoundary } from './log-epoch.ts';

/** A page of a conversation: the messages next to a seq, in the order of their seqs. */
export interface HistoryRequest {
  readonly conversationId: ConversationId;
  /** The nearest messages before `seq`, or those after it. */
  readonly direction: 'before' | 'after';
  readonly seq: Seq;
  readonly limit: number;
  /**
   * A message is taken only while the texts, attachments and cards before it in the page have less than this size. So
   * the first message is always taken.
   */
  readonly maxBytes: number;
}

export interface HistoryPage extends EpochBoundary {
  /** The messages in ascending order of seq, whatever the direction of the request. */
  readonly messages: readonly StoredMessage[];
  /** True: there are more messages in the direction of the request. */
  readonly more: boolean;
  /** The seq of the first message that exists: a retention rule removed the messages before it. */
  readonly firstSeq: Seq;
}

/** The row of a message with its sender. */
export interface MessageRow extends Omit<StoredMessage, 'sender' | 'attachments' | 'cards'> {
  readonly attachments: readonly Attachment[] | null;
  readonly cards: readonly MessageCard[] | null;
  readonly senderId: AccountId;
  readonly senderName: string;
  readonly senderNick: string | null;
  readonly senderKind: SenderKind;
}

const MAX_HISTORY_ROWS = 201;

/** The SQL columns that `messageOf` converts, from a message `m` and its sender `a`. */
export function messageColumns(sql: Sql | Transaction): Fragment {
  return (sql as Sql)`
    m.seq, m.rev, m.epoch as "logEpoch", m.text, m.label, m.icon_url as "iconUrl", m.sent_at as "sentAt", m.edited_at as "editedAt",
    m.deleted_at as "deletedAt", m.attachments, m.cards, m.client_id as "clientId", a.id as "senderId", a.name as "senderName", a.nick as "senderNick",
    a.kind as "senderKind"`;
}

/** The size of a message `m` in bytes, as SQL: of its text, attachments and cards. */
export function messageBytes(sql: Sql): Fragment {
  return sql`octet_length(m.text) + coalesce(octet_length(m.attachments::text), 0) + coalesce(octet_length(m.cards::text), 0)`;
}

export function messageOf({
  senderId: id,
  senderName: name,
  senderNick: nick,
  senderKind: kind,
  ...row
}: MessageRow): StoredMessage {
  const { seq, rev, logEpoch, text, label, iconUrl, sentAt, editedAt, deletedAt, clientId } = row;
  const attachments = row.attachments ?? [];
  const cards = row.cards ?? [];
  const sender = { id, name, nick, kind };
  return {
    seq,
    rev,
    logEpoch,
    sender,
    text,
    label,
    iconUrl,
    sentAt,
    editedAt,
    deletedAt,
    attachments,
    cards,
    clientId,
  };
}

/** Reads the messages before or after a seq; null if there is no such conversation. */
export async function readHistory(sql: Sql, request: HistoryRequest): Promise<HistoryPage | null> {
  const { conversationId, direction, seq, maxBytes } = request;
  const limit = Math.min(request.limit, MAX_HISTORY_ROWS - 1);
  const isBefore = direction === 'before';
  const order = isBefore ? sql`order by m.seq desc` : sql`order by m.seq`;
  // One statement, so that the first seq and the messages come from one snapshot. If there are no messages, it returns
  // one row with the columns of the head.
  const rows = await sql<(MessageRow & EpochBoundary & { candidates: number | null; firstSeq: Seq })[]>`
    select h.first_seq as "firstSeq", ${epochBoundaryColumns(sql)}, m.candidates::int as candidates, ${messageColumns(sql)}
    from conversation_head h
    left join lateral (
      select m.*, count(*) over () as candidates,
        coalesce(sum(${messageBytes(sql)}) over (${order} rows between unbounded preceding and 1 preceding), 0) as before
      from (
        select * from message m
        where m.conversation_id = ${conversationId} and m.seq >= h.first_seq and ${isBefore ? sql`m.seq < ${seq}` : sql`m.seq > ${seq}`}
        ${order} limit ${limit + 1}
      ) m
    ) m on m.before < ${maxBytes}
    left join account a on a.id = m.sender_id
    where h.conversation_id = ${conversationId}
    ${order} limit ${limit}`;
  const [first] = rows;
  if (first === undefined) return null;
  const messages = rows.filter(({ candidates }) => candidates !== null).map(messageOf);
  if (isBefore) messages.reverse();
  const { candidates, firstSeq, currentEpoch, previousEpoch, epochRev } = first;
  return { messages, more: messages.length < (candidates ?? 0), firstSeq, currentEpoch, previousEpoch, epochRev };
}

/** The current state of the message with this seq; null where there is none, or a retention rule removed it. */
export async function readMessage(
  sql: Sql,
  { conversationId, seq }: { readonly conversationId: ConversationId; readonly seq: Seq },
): Promise<StoredMessage | null> {
  const [row] = await sql<MessageRow[]>`
    select ${messageColumns(sql)}
    from message m join account a on a.id = m.sender_id
    join conversation_head h on h.conversation_id = m.conversation_id and m.seq >= h.first_seq
    where m.conversation_id = ${conversationId} and m.seq = ${seq}`;
  return row === undefined ? null : messageOf(row);
}

/** A message that an account wants to change, with the account's role and the state of the conversation. */
export interface LockedMessageWithRole extends StoredMessage {
  /** The role of the account that changes the message; null: the account is not a member. */
  readonly role: GroupRole | null;
  readonly archived: boolean;
  /** True: a reverse webhook asks for events, so that a change of the message writes one. */
  readonly wantsEvents: boolean;
}

/**
 * Locks the conversation until the transaction ends, and reads a message and the account's role under the lock. Null
 * when the message does not exist, or a retention rule removed it.
 */
export async function lockHeadAndReadMessage(
  tx: Transaction,
  key: { conversationId: ConversationId; seq: Seq; accountId: AccountId },
): Promise<LockedMessageWithRole | null> {
  const { conversationId, seq, accountId } = key;
  const [head] = await tx<{ archived: boolean; wantsEvents: boolean; firstSeq: Seq }[]>`
    select archived_at is not null as archived, wants_events as "wantsEvents", first_seq as "firstSeq"
    from conversation_head
    where conversation_id = ${conversationId} for no key update`;
  if (head === undefined || seq < head.firstSeq) return null;
  // A separate statement: its snapshot includes changes that were committed while the first one waited for the lock.
  const [row] = await tx<(MessageRow & { role: GroupRole | null })[]>`
    select s.role, ${messageColumns(tx)}
    from message m join account a on a.id = m.sender_id
    left join membership s on s.conversation_id = m.conversation_id and s.account_id = ${accountId}
    where m.conversation_id = ${conversationId} and m.seq = ${seq}`;
  const { archived, wantsEvents } = head;
  return row === undefined ? null : { ...messageOf(row), role: row.role, archived, wantsEvents };
}

/** A message to change, and the account that changes it. */
interface MessageChange extends ChangeOrigin {
  readonly conversationId: ConversationId;
  readonly seq: Seq;
}

/**
 * Gives a message another text and the next rev. It drops the cards, because they would show the former text. The
 * caller holds the conversation's lock (`lockHeadAndReadMessage`).
 */
export function updateMessageText(
  tx: Transaction,
  change: MessageChange,
  text: string,
): Promise<{ rev: Rev; at: Date }> {
  const { conversationId, seq } = change;
  return writeWithNextRev(
    tx,
    { ...change, kind: 'message.updated' },
    (rev) => tx`
    update message set text = ${text}, cards = null, edited_at = clock_timestamp(), rev = ${rev}
    where conversation_id = ${conversationId} and seq = ${seq}
    returning edited_at as at`,
  );
}

/**
 * Erases a message's content and what was derived from it (search index, mentions), marks its files as removed, and
 * gives its row the next rev. The caller holds the conversation's lock (`lockHeadAndReadMessage`).
 */
export async function eraseMessage(tx: Transaction, change: MessageChange): Promise<{ rev: Rev; at: Date }> {
  const { conversationId, seq } = change;
  const erased = await writeWithNextRev(
    tx,
    { ...change, kind: 'message.deleted' },
    (rev) => tx`
    update message set text = '', label = null, icon_url = null, attachments = null, cards = null, deleted_at = clock_timestamp(), rev = ${rev}
    where conversation_id = ${conversationId} and seq = ${seq}
    returning deleted_at as at`,
  );
  await markMessageFilesRemoved(tx, { conversationId, seq });
  await tx`delete from search_index where conversation_id = ${conversationId} and seq = ${seq}`;
  await tx`delete from mention where conversation_id = ${conversationId} and seq = ${seq}`;
  return erased;
}

async function writeWithNextRev(
  tx: Transaction,
  change: MessageChange & { readonly kind: ChangeEventKind },
  write: (rev: Rev) => PromiseLike<readonly unknown[]>,
): Promise<{ rev: Rev; at: Date }> {
  const { conversationId } = change;
  const [head] = await tx<{ rev: Rev; afterSeq: Seq; wantsEvents: boolean; logEpoch: LogEpoch }[]>`
    with ${logEpochCte(tx)}
    update conversation_head h set last_rev = h.last_rev + 1, ${stampHeadEpoch(tx)}
    where h.conversation_id = ${conversationId}
    returning h.last_rev as rev, h.last_seq as "afterSeq", h.wants_events as "wantsEvents", h.epoch as "logEpoch"`;
  const { rev, afterSeq, wantsEvents, logEpoch } = head!;
  noteRev(tx, conversationId, rev);
  const [row] = await write(rev);
  const { at } = row as { at: Date };
  if (wantsEvents) await insertHookEvent(tx, { ...change, rev, afterSeq, at, logEpoch });
  return { rev, at };
}

/** Whether the peer in a private conversation has blocked the account; false in groups. */
export async function isBlockedByPeer(
  sql: Sql | Transaction,
  key: { conversationId: ConversationId; accountId: AccountId },
): Promise<boolean> {
  const rows = await sql`
    select from private_conversation p join block b on b.account_id in (p.low_id, p.high_id)
    where p.conversation_id = ${key.conversationId} and b.blocked_id = ${key.accountId}`;
  return rows.length > 0;
}
