import type { ConversationId } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';

/**
 * Stores in the head's row whether a hook of the conversation asks for events; the caller holds the head's lock. So
 * each change of a message reads this flag from the row that it locks. A change that comes before the registration of a
 * hook writes no event, and the events of the hook start after that change.
 */
export async function updateWantsEvents(tx: Sql | Transaction, conversationId: ConversationId): Promise<void> {
  await tx`
    update conversation_head h set wants_events = not h.wants_events
    where h.conversation_id = ${conversationId} and h.wants_events <> exists (
      select from reverse_hook r
      where r.conversation_id = ${conversationId} and r.removed_at is null and r.events <> '{}')`;
}
