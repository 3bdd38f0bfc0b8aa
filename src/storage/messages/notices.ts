import type { AccountId, ConversationId, LogEpoch, Rev, Seq } from '../../model/ids.ts';
import { noteRev } from '../db/committed-revs.ts';
import type { Transaction } from '../db/connection.ts';
import { logEpochCte, stampHeadEpoch } from './log-epoch.ts';

/**
 * Writes a change of a conversation that is not a message: it takes the next rev and no seq. Locks the head until the
 * commit; a caller that writes notices to several conversations goes in the order of their ids.
 */
export async function insertNotice(
  tx: Transaction,
  notice: {
    conversationId: ConversationId;
    kind: string;
    /** The account that caused the change; null: the server. */
    actorId?: AccountId | null;
    details: Readonly<Record<string, string | number | boolean | null>>;
  },
): Promise<Rev> {
  const { conversationId, kind, actorId = null, details } = notice;
  const [head] = await tx<{ rev: Rev; afterSeq: Seq; epoch: LogEpoch }[]>`
    with ${logEpochCte(tx)}
    update conversation_head h set last_rev = h.last_rev + 1, ${stampHeadEpoch(tx)}
    where h.conversation_id = ${conversationId}
    returning h.last_rev as rev, h.last_seq as "afterSeq", h.epoch`;
  const { rev, afterSeq, epoch } = head!;
  await tx`
    insert into notice (conversation_id, rev, after_seq, epoch, kind, actor_id, details)
    values (${conversationId}, ${rev}, ${afterSeq}, ${epoch}, ${kind}, ${actorId}, ${tx.json(details)})`;
  noteRev(tx, conversationId, rev);
  return rev;
}
