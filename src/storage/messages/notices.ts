import type { AccountId, ConversationId, Rev, Seq } from '../../model/ids.ts';
import type { Transaction } from '../db/connection.ts';

/**
 * Tells the members of a conversation about a change that is no message: it takes the next rev and no seq. Locks the
 * head until the commit; whoever notices several conversations goes in the order of their ids.
 */
export async function insertNotice(
  tx: Transaction,
  notice: {
    conversationId: ConversationId;
    kind: string;
    /** Whose doing it was; null: the server's. */
    actorId?: AccountId | null;
    details: Readonly<Record<string, string | number | boolean | null>>;
  },
): Promise<Rev> {
  const { conversationId, kind, actorId = null, details } = notice;
  const [head] = await tx<{ rev: Rev; afterSeq: Seq }[]>`
    update conversation_head set last_rev = last_rev + 1 where conversation_id = ${conversationId}
    returning last_rev as rev, last_seq as "afterSeq"`;
  await tx`
    insert into notice (conversation_id, rev, after_seq, kind, actor_id, details)
    values (${conversationId}, ${head!.rev}, ${head!.afterSeq}, ${kind}, ${actorId}, ${tx.json(details)})`;
  return head!.rev;
}
