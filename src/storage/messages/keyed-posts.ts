import type { ConversationId, LogEpoch, Seq } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';

/** The answer to a post with an idempotency key, and the hash of its body. */
interface KeyedPost {
  readonly seq: Seq;
  readonly logEpoch: LogEpoch;
  readonly bodyHash: string;
}

/** Null: no post with this key is stored. The key includes its namespace. */
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
