import type { ConversationId, Seq } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';

/**
 * The first seq after `after` whose message was sent at this moment or later; the last seq plus one when there is none.
 * Send times never decrease within a conversation, so about twenty look-ups by key find the message among a million.
 */
export async function firstSeqSince(
  sql: Sql | Transaction,
  place: { conversationId: ConversationId; after: Seq; lastSeq: Seq },
  earliestSentAt: Date,
): Promise<Seq> {
  const { conversationId, after, lastSeq } = place;
  const [found] = await sql<{ seq: Seq }[]>`
    with recursive search (low, high) as (
      select ${after + 1}::bigint, ${lastSeq + 1}::bigint
      union all
      select case when m.sent_at < ${earliestSentAt} then m.seq + 1 else s.low end,
        case when m.sent_at < ${earliestSentAt} then s.high else m.seq end
      from search s join lateral (
        select seq, sent_at from message
        where conversation_id = ${conversationId} and seq = (s.low + s.high) / 2 and s.low < s.high limit 1
      ) m on true
    )
    select low as seq from search order by high - low limit 1`;
  return found!.seq;
}
