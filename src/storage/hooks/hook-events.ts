import type { ChangeEventKind } from '../../model/change-event.ts';
import type { ConversationId, LogEpoch, Rev, Seq } from '../../model/ids.ts';
import type { SenderKind } from '../../model/roles.ts';
import type { Sql } from '../db/connection.ts';
import { messageBytes } from '../messages/messages.ts';
import { deliveryMessageColumns, type DeliveryMessage } from './lanes.ts';

/** An event with the current state of its message. */
export interface DeliveryEvent {
  readonly rev: Rev;
  /** The log epoch in which the event was written. */
  readonly logEpoch: LogEpoch;
  /** The seq of the newest message at the time of the change: the event comes after it and before the next message. */
  readonly afterSeq: Seq;
  /** The seq of the message that was changed. */
  readonly seq: Seq;
  readonly kind: ChangeEventKind;
  readonly at: Date;
  /** The number of webhooks that the cause of the change passed through. */
  readonly hops: number;
  readonly actorId: number;
  readonly actorName: string;
  readonly actorNick: string | null;
  readonly actorKind: SenderKind;
  /** Null: a retention rule removed the message, and there is nothing left to deliver. */
  readonly message: ChangedMessage | null;
}

export type ChangedMessage = Omit<DeliveryMessage, 'hops' | 'iconUrl'> & { readonly editedAt: Date | null };

/** The start of a read: the events of a conversation after a rev. */
interface EventPagePosition {
  readonly conversationId: ConversationId;
  readonly afterRev: Rev;
}

/** Events after a position, in the order of their revs; empty where there are none. */
export interface DeliveryEventPage {
  readonly events: readonly DeliveryEvent[];
  /** The seq of the newest message at the time of the read: events that are written later come after that message. */
  readonly headSeq: Seq;
}

interface EventRow extends Omit<DeliveryEvent, 'rev' | 'seq' | 'logEpoch' | 'message'>, ChangedMessage {
  readonly ord: number;
  readonly headSeq: Seq;
  /** Null: there is no event after this position. */
  readonly eventRev: Rev | null;
  readonly eventSeq: Seq;
  readonly eventLogEpoch: LogEpoch;
  /** True: the changed message no longer exists, so that its columns are null. */
  readonly removed: boolean;
}

/**
 * Reads the next events at each position, at most `limit`. An event is taken only while the texts, attachments and
 * cards of the messages before it have less than `maxBytes`, so at least one is taken. One statement reads head and
 * events, and every event is written under the head's lock. So if any earlier statement has seen a message, these pages
 * contain all events before that message.
 */
export async function readDeliveryEvents(
  sql: Sql,
  positions: readonly EventPagePosition[],
  { limit, bytes: maxBytes }: { limit: number; bytes: number },
): Promise<DeliveryEventPage[]> {
  const rows = await sql<EventRow[]>`
    select p.ord::int as ord, h.last_seq as "headSeq", m.event_rev as "eventRev", m.event_seq as "eventSeq",
      m.event_epoch as "eventLogEpoch",
      m.seq is null as removed, m.after_seq as "afterSeq", m.event_kind as kind, m.at, m.event_hops as hops,
      m.actor_id as "actorId", b.name as "actorName", b.nick as "actorNick", b.kind as "actorKind",
      m.edited_at as "editedAt", ${deliveryMessageColumns(sql)}
    from unnest(${positions.map((p) => p.conversationId)}::bigint[], ${positions.map((p) => p.afterRev)}::bigint[])
      with ordinality as p(conversation_id, after_rev, ord)
    join conversation_head h on h.conversation_id = p.conversation_id
    join conversation c on c.id = p.conversation_id
    left join lateral (
      select n.*, sum(n.bytes) over (order by n.event_rev) - n.bytes as bytes_before
      from (
        select m.*, e.rev as event_rev, e.seq as event_seq, e.after_seq, e.kind as event_kind, e.hops as event_hops, e.epoch as event_epoch,
          e.actor_id, e.at, coalesce(${messageBytes(sql)}, 0) as bytes
        from hook_event e
        left join message m on m.conversation_id = e.conversation_id and m.seq = e.seq and m.seq >= h.first_seq
        where e.conversation_id = p.conversation_id and e.rev > p.after_rev
        order by e.rev limit ${limit}
      ) n
    ) m on m.bytes_before < ${maxBytes}
    left join account a on a.id = m.sender_id
    left join account b on b.id = m.actor_id
    order by p.ord, m.event_rev`;
  const rowsByPosition = Map.groupBy(rows, (row) => row.ord);
  return positions.map((_, index) => pageOf(rowsByPosition.get(index + 1) ?? []));
}

function pageOf(rows: readonly EventRow[]): DeliveryEventPage {
  const events = rows.filter((row) => row.eventRev !== null).map(eventOf);
  return { events, headSeq: rows[0]?.headSeq ?? (0 as Seq) };
}

function eventOf(row: EventRow): DeliveryEvent {
  const { eventRev, eventSeq, eventLogEpoch: logEpoch, removed, afterSeq, kind, at, hops } = row;
  const { actorId, actorName, actorNick, actorKind } = row;
  const { seq, rev, text, sentAt, editedAt, deliveredAsDeleted, attachments, cards, title, label } = row;
  const { senderId, senderName, senderNick, senderKind } = row;
  const sender = { senderId, senderName, senderNick, senderKind, label };
  // The message is in its state after this event or after a later one, so its epoch is at least the event's.
  const revLogEpoch = Math.max(row.revLogEpoch, logEpoch) as LogEpoch;
  const numbers = { seq, logEpoch: row.logEpoch, rev, revLogEpoch };
  const message = { ...numbers, text, sentAt, editedAt, deliveredAsDeleted, attachments, cards, title, ...sender };
  const event = {
    rev: eventRev!,
    logEpoch,
    seq: eventSeq,
    afterSeq,
    kind,
    at,
    hops,
    actorId,
    actorName,
    actorNick,
    actorKind,
  };
  return { ...event, message: removed ? null : message };
}
