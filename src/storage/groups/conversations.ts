import type { ConversationNotificationLevel } from '../../model/device.ts';
import type { AccountId, ConversationId, Rev, Seq } from '../../model/ids.ts';
import type { GroupRole } from '../../model/roles.ts';
import type { Actor } from '../messages/changes.ts';
import type { Sql } from '../db/connection.ts';

/** The newest message of a conversation, as a list of conversations shows it. */
export interface MessagePreview {
  readonly seq: Seq;
  readonly sender: Actor;
  readonly label: string | null;
  /** The first `PREVIEW_CHARACTERS` of the message's text. */
  readonly text: string;
  readonly deleted: boolean;
  /** The number of files that are attached to the message. */
  readonly attachments: number;
}

/** A conversation as one of its members sees it. */
export interface OwnConversation {
  readonly id: ConversationId;
  readonly kind: 'group' | 'private';
  /** The title of a group; null for a private conversation. */
  readonly title: string | null;
  readonly about: string | null;
  readonly public: boolean;
  readonly archived: boolean;
  readonly role: GroupRole;
  readonly members: number;
  /** The other person of a private conversation; null for a group. */
  readonly peer: Actor | null;
  readonly createdAt: Date;
  /** The conversation's first seq: a retention rule removed the messages before it. */
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  readonly lastRev: Rev;
  /** Null: the conversation never had a message. */
  readonly lastMessageAt: Date | null;
  /** Null: the conversation never had a message, or a retention rule removed all of them. */
  readonly lastMessage: MessagePreview | null;
  readonly readSeq: Seq;
  readonly unreadMentions: number;
  readonly level: ConversationNotificationLevel;
  /** The member gets no pushes before this moment; it may be in the past. */
  readonly mutedUntil: Date | null;
}

const MAX_LISTED_CONVERSATIONS = 1_001;
/**
 * The count of unread mentions stops at this number: an account that never reads, such as a bot, may have any number.
 */
const MAX_COUNTED_MENTIONS = 1_000;
/**
 * The length of a preview in code points: about one line of a list. With whole texts, a page of 1,000 conversations
 * could have 40 MB.
 */
const PREVIEW_CHARACTERS = 200;

interface PreviewRow {
  readonly messageSeq: Seq | null;
  readonly messageLabel: string | null;
  readonly messageText: string;
  readonly messageDeleted: boolean;
  readonly messageAttachments: number;
  readonly senderId: AccountId;
  readonly senderName: string;
  readonly senderNick: string | null;
  readonly senderKind: Actor['kind'];
}

interface ConversationRow extends Omit<OwnConversation, 'peer' | 'lastMessage'>, PreviewRow {
  readonly peerId: AccountId | null;
  readonly peerName: string;
  readonly peerNick: string;
  readonly peerKind: Actor['kind'];
}

/**
 * Conversations of an account, sorted by id: a page, or only the one with the id `only`. The query cuts the page before
 * it joins other tables, and then looks each row up by keys. It took 20 to 50 ms for 1,000 conversations of 20 members
 * each, half of it for counting the members.
 */
export async function listConversations(
  sql: Sql,
  asked: { accountId: AccountId; after: number; limit: number } | { accountId: AccountId; only: ConversationId },
): Promise<OwnConversation[]> {
  const pageCondition =
    'only' in asked
      ? sql`and conversation_id = ${asked.only}`
      : sql`and conversation_id > ${asked.after} order by conversation_id limit ${Math.min(asked.limit, MAX_LISTED_CONVERSATIONS)}`;
  const rows = await sql<ConversationRow[]>`
    select c.id, c.kind, c.title, c.about, c.public, h.archived_at is not null as archived, m.role,
      (select count(*) from membership o where o.conversation_id = m.conversation_id) as members,
      a.id as "peerId", a.name as "peerName", a.nick as "peerNick", a.kind as "peerKind",
      c.created_at as "createdAt", h.first_seq as "firstSeq", h.last_seq as "lastSeq", h.last_rev as "lastRev",
      nullif(h.last_at, '-infinity') as "lastMessageAt", m.read_seq as "readSeq",
      (select count(*) from (
        select from mention x
        where x.account_id = m.account_id and x.conversation_id = m.conversation_id and x.seq > greatest(m.read_seq, h.first_seq - 1)
        limit ${MAX_COUNTED_MENTIONS}) counted) as "unreadMentions",
      coalesce(s.level, 'all') as level, s.muted_until as "mutedUntil",
      l.seq as "messageSeq", l.label as "messageLabel", left(l.text, ${PREVIEW_CHARACTERS}) as "messageText",
      l.deleted_at is not null as "messageDeleted", coalesce(jsonb_array_length(l.attachments), 0) as "messageAttachments",
      b.id as "senderId", b.name as "senderName", b.nick as "senderNick", b.kind as "senderKind"
    from (select * from membership where account_id = ${asked.accountId} ${pageCondition}) m
    join conversation c on c.id = m.conversation_id
    join conversation_head h on h.conversation_id = m.conversation_id
    left join notification_setting s on s.conversation_id = m.conversation_id and s.account_id = m.account_id
    left join private_conversation p on p.conversation_id = m.conversation_id
    left join account a on a.id = case when p.low_id = m.account_id then p.high_id else p.low_id end
    left join message l on l.conversation_id = h.conversation_id and l.seq = h.last_seq and l.seq >= h.first_seq
    left join account b on b.id = l.sender_id
    order by c.id`;
  return rows.map(({ peerId: id, peerName: name, peerNick: nick, peerKind: kind, ...row }) => ({
    ...row,
    peer: id === null ? null : { id, name, nick, kind },
    lastMessage: previewOf(row),
  }));
}

function previewOf(row: PreviewRow): MessagePreview | null {
  const { messageSeq: seq, messageLabel: label, messageText: text, messageDeleted: deleted } = row;
  if (seq === null) return null;
  const { senderId: id, senderName: name, senderNick: nick, senderKind: kind, messageAttachments: attachments } = row;
  return { seq, sender: { id, name, nick, kind }, label, text, deleted, attachments };
}
