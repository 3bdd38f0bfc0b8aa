import type { Attachment } from '../../model/attachment.ts';
import type { AccountId, ConversationId, LogEpoch, Rev, Seq } from '../../model/ids.ts';
import type { MessageCard } from '../../model/message-card.ts';
import type { SenderKind } from '../../model/roles.ts';
import type { Sql } from '../db/connection.ts';
import { epochBoundaryColumns, type EpochBoundary } from './log-epoch.ts';

/** The account that did something. */
export interface Actor {
  readonly id: AccountId;
  readonly name: string;
  /** Null for a group's integration. */
  readonly nick: string | null;
  readonly kind: SenderKind;
}

/** A message in its current state. */
export interface StoredMessage {
  readonly seq: Seq;
  /** The rev of the change that produced this state. */
  readonly rev: Rev;
  /** The log epoch in which the message was written; an edit does not change it. */
  readonly logEpoch: LogEpoch;
  readonly sender: Actor;
  /** Empty if the message is deleted. */
  readonly text: string;
  readonly label: string | null;
  readonly iconUrl: string | null;
  readonly sentAt: Date;
  readonly editedAt: Date | null;
  readonly deletedAt: Date | null;
  /** The files of the message, in the order that its sender gave. */
  readonly attachments: readonly Attachment[];
  /** The structured parts of the message; empty if it is only text. */
  readonly cards: readonly MessageCard[];
  /**
   * The id by which the sender's clients recognise the message; no other account receives it. Null: the sender gave
   * none.
   */
  readonly clientId: string | null;
}

/** A change of a conversation that is not a message. */
export interface StoredNotice {
  readonly kind: string;
  readonly actor: Actor | null;
  readonly details: Readonly<Record<string, string | number | boolean | null>>;
  readonly at: Date;
  /** The seq of the newest message when the notice was written: the notice follows that message. 0: there was none. */
  readonly afterSeq: Seq;
}

export interface NoticeChange {
  readonly rev: Rev;
  readonly type: 'notice';
  readonly notice: StoredNotice;
}

/**
 * A change of a conversation, with the state that it produced. A message that changed again later appears only once, at
 * its newest rev.
 */
export type Change = { readonly rev: Rev; readonly type: 'message'; readonly message: StoredMessage } | NoticeChange;

/** A page of a conversation's changes. */
export interface ChangePage extends EpochBoundary {
  readonly changes: readonly Change[];
  /** The page contains all changes up to this rev: the next page begins after it. */
  readonly rev: Rev;
  readonly more: boolean;
  /** The seq of the first message that no retention rule has removed. */
  readonly firstSeq: Seq;
}

/**
 * Selects changes after `afterRev`: at most `limit` rows. A row is taken only while the texts, attachments and cards
 * before it in the page have less than `maxBytes`.
 */
interface ChangePageRequest {
  readonly conversationId: ConversationId;
  readonly afterRev: Rev;
  readonly limit: number;
  readonly maxBytes: number;
}

const MAX_CHANGE_ROWS = 1_000;

interface ChangeRow extends EpochBoundary {
  readonly head: Rev;
  readonly firstSeq: Seq;
  readonly rev: Rev | null;
  readonly logEpoch: LogEpoch;
  readonly seq: Seq | null;
  /** Whether the texts, attachments and cards of the rows before this row have less than `maxBytes` in all. */
  readonly fits: boolean;
  readonly text: string;
  readonly label: string | null;
  readonly iconUrl: string | null;
  readonly at: Date;
  readonly editedAt: Date | null;
  readonly deletedAt: Date | null;
  readonly attachments: readonly Attachment[] | null;
  readonly cards: readonly MessageCard[] | null;
  readonly clientId: string | null;
  readonly kind: string;
  readonly details: StoredNotice['details'];
  readonly afterSeq: Seq;
  readonly senderOrActorId: AccountId | null;
  readonly senderOrActorName: string;
  readonly senderOrActorNick: string | null;
  readonly senderOrActorKind: SenderKind;
}

/**
 * Reads changes of a conversation in the order of their revs, and the rev up to which they are complete; null if there
 * is no such conversation. One statement reads head and rows from one snapshot. Revs are assigned under the head's
 * lock, which is held until the commit. So no change with a lower rev than that of the head can appear later.
 */
export async function readChanges(sql: Sql, request: ChangePageRequest): Promise<ChangePage | null> {
  const { conversationId, afterRev, maxBytes } = request;
  const limit = Math.min(request.limit, MAX_CHANGE_ROWS);
  // The query reads one extra row, which shows whether there are more. It also returns rows past the byte limit,
  // without their texts.
  const rows = await sql<ChangeRow[]>`
    select h.last_rev as head, h.first_seq as "firstSeq", ${epochBoundaryColumns(sql)}, c.rev, c.seq, c.epoch as "logEpoch", coalesce(c.before, 0) < ${maxBytes} as fits,
      case when coalesce(c.before, 0) < ${maxBytes} then c.text else '' end as text,
      case when coalesce(c.before, 0) < ${maxBytes} then c.attachments end as attachments,
      case when coalesce(c.before, 0) < ${maxBytes} then c.cards end as cards, c.label,
      c.client_id as "clientId", c.icon_url as "iconUrl", c.at, c.edited_at as "editedAt", c.deleted_at as "deletedAt", c.kind, c.details, c.after_seq as "afterSeq", a.id as "senderOrActorId",
      a.name as "senderOrActorName", a.nick as "senderOrActorNick", a.kind as "senderOrActorKind"
    from conversation_head h
    left join lateral (
      select u.*,
        sum(octet_length(u.text) + coalesce(octet_length(u.attachments::text), 0) + coalesce(octet_length(u.cards::text), 0)) over (order by u.rev rows between unbounded preceding and 1 preceding) as before
      from (
        (select m.rev, m.seq, m.epoch, m.sender_id as actor_id, m.text, m.label, m.icon_url, m.sent_at as at, m.edited_at,
          m.deleted_at, m.attachments, m.cards, m.client_id, null::text as kind, null::jsonb as details, null::bigint as after_seq
        from message m where m.conversation_id = ${conversationId} and m.rev > ${afterRev}
          and m.seq >= h.first_seq
        order by m.rev limit ${limit + 1})
        union all
        (select n.rev, null, n.epoch, n.actor_id, '', null, null, n.at, null, null, null, null, null, n.kind, n.details, n.after_seq
        from notice n where n.conversation_id = ${conversationId} and n.rev > ${afterRev}
        order by n.rev limit ${limit + 1})
      ) u
      order by u.rev limit ${limit + 1}
    ) c on true
    left join account a on a.id = c.actor_id
    where h.conversation_id = ${conversationId}
    order by c.rev`;
  const [first] = rows;
  if (first === undefined) return null;
  const { firstSeq, currentEpoch, previousEpoch, epochRev } = first;
  const common = { firstSeq, currentEpoch, previousEpoch, epochRev };
  const changes: Change[] = [];
  for (const row of rows) {
    if (row.rev === null) break;
    if (changes.length === limit || !row.fits) return { changes, rev: changes.at(-1)!.rev, more: true, ...common };
    changes.push(changeOf(row, row.rev));
  }
  return { changes, rev: first.head, more: false, ...common };
}

function changeOf(row: ChangeRow, rev: Rev): Change {
  const { senderOrActorId: id, senderOrActorName: name, senderOrActorNick: nick, senderOrActorKind } = row;
  const actor: Actor | null = id === null ? null : { id, name, nick, kind: senderOrActorKind };
  if (row.seq === null) {
    const { kind, details, at, afterSeq } = row;
    return { rev, type: 'notice', notice: { kind, actor, details, at, afterSeq } };
  }
  const { seq, logEpoch, text, label, iconUrl, at: sentAt, editedAt, deletedAt, clientId } = row;
  const contents = { text, label, iconUrl, attachments: row.attachments ?? [], cards: row.cards ?? [] };
  return {
    rev,
    type: 'message',
    message: { seq, rev, logEpoch, sender: actor!, ...contents, sentAt, editedAt, deletedAt, clientId },
  };
}
