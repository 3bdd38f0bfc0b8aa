import type { ConversationId } from '../model/ids.ts';
import type { Transaction } from './connection.ts';

/** Tells the members of a group about a change that is no message: it takes the group's next rev and no seq. */
export async function insertNotice(
  tx: Transaction,
  notice: { conversationId: ConversationId; kind: string; details: Readonly<Record<string, string | number>> },
): Promise<void> {
  const { conversationId, kind, details } = notice;
  const [head] = await tx<{ rev: number }[]>`
    update conversation_head set last_rev = last_rev + 1 where conversation_id = ${conversationId}
    returning last_rev as rev`;
  await tx`
    insert into notice (conversation_id, rev, kind, details)
    values (${conversationId}, ${head!.rev}, ${kind}, ${tx.json(details)})`;
}
