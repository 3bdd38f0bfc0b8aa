import type { ConversationId, LogEpoch, Seq } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';

/** The stored answer to a post with an idempotency key, and the hash of the body of that post. */
interface KeyedPost {
  readonly seq: Seq;
  readonly logEpoch: LogEpoch;
  readonly bodyHash: string;
}

/**
 * Finds the post with this idempotency key; null: there is none. The key includes a namespace, which keeps the keys of
 * different senders apart.
 */
export async function findKeyedPost(
  sql: Sql,
  { conversationId, key }: { readonly conversationId: ConversationId; readonly key: string },
): Promise<KeyedPost | null> {
  const [row] = await sql<KeyedPost[]>`
    select k.seq, coalesce(m.epoch, 0) as "logEpoch", k.body_hash as "bodyHash"
    from idempotency_key k left join message m on m.conversation_id = k.conversation_id and m.seq = k.seq
    where k.conversation_id = ${conversationId} and k.key = ${key}`;
  return row ?? null;
}
