import type { ChangeEventKind } from '../../model/change-event.ts';
import type { AccountId, ConversationId, LogEpoch, Rev, Seq } from '../../model/ids.ts';
import type { Transaction } from '../db/connection.ts';

/** The account that changed a message, and how often the cause of the change passed through webhooks. */
export interface ChangeOrigin {
  readonly actorId: AccountId;
  readonly hops: number;
}

/** An event for reverse webhooks: the change of a message. */
interface NewHookEvent extends ChangeOrigin {
  readonly conversationId: ConversationId;
  readonly rev: Rev;
  /** The seq of the newest message of the conversation at the time of the change. */
  readonly afterSeq: Seq;
  /** The seq of the message that was changed. */
  readonly seq: Seq;
  readonly kind: ChangeEventKind;
  readonly at: Date;
  readonly logEpoch: LogEpoch;
}

/**
 * Writes an event in the transaction of its change. That transaction holds the head's lock, and has read there that a
 * hook asks for events (`wants_events`).
 */
export async function insertHookEvent(tx: Transaction, event: NewHookEvent): Promise<void> {
  const { conversationId, rev, afterSeq, seq, kind, actorId, hops, at, logEpoch } = event;
  await tx`
    insert into hook_event (conversation_id, rev, after_seq, seq, kind, actor_id, hops, at, epoch)
    values (${conversationId}, ${rev}, ${afterSeq}, ${seq}, ${kind}, ${actorId}, ${hops}, ${at}, ${logEpoch})`;
}
