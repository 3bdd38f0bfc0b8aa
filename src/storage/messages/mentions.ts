import type { AccountId, ConversationId, Seq } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';
import type { StoredMessage } from './changes.ts';
import { messageBytes, messageColumns, messageOf, type MessageRow } from './messages.ts';

/** Messages of a conversation that mention an account: the nearest ones before or after a message. */
interface MentionRequest {
  readonly conversationId: ConversationId;
  readonly accountId: AccountId;
  readonly direction: 'before' | 'after';
  readonly seq: Seq;
  readonly limit: number;
  /**
   * A message is taken only while the texts, attachments and cards before it in the page have less than this size. So
   * the first message is always taken.
   */
  readonly maxBytes: number;
}

const MAX_MENTION_ROWS = 201;

/**
 * Reads messages that mention an account, in ascending order of seq for both directions. `more`: there are more
 * mentions in this direction.
 */
export async function readMentions(
  sql: Sql,
  request: MentionRequest,
): Promise<{ messages: readonly StoredMessage[]; more: boolean }> {
  const { conversationId, accountId, direction, seq, maxBytes } = request;
  const limit = Math.min(request.limit, MAX_MENTION_ROWS - 1);
  const isBefore = direction === 'before';
  const order = isBefore ? sql`order by seq desc` : sql`order by seq`;
  const rows = await sql<(MessageRow & { candidates: number })[]>`
    select m.candidates::int as candidates, ${messageColumns(sql)}
    from (
      select m.*, count(*) over () as candidates,
        coalesce(sum(${messageBytes(sql)}) over (${order} rows between unbounded preceding and 1 preceding), 0) as before
      from (
        select x.conversation_id, x.seq as mentioned_seq from mention x
        join conversation_head h on h.conversation_id = x.conversation_id
        where x.account_id = ${accountId} and x.conversation_id = ${conversationId} and x.seq >= h.first_seq
          and ${isBefore ? sql`x.seq < ${seq}` : sql`x.seq > ${seq}`}
        order by x.seq ${isBefore ? sql`desc` : sql``} limit ${limit + 1}
      ) x
      join message m on m.conversation_id = x.conversation_id and m.seq = x.mentioned_seq
    ) m
    join account a on a.id = m.sender_id
    where m.before < ${maxBytes}
    order by m.seq ${isBefore ? sql`desc` : sql``} limit ${limit}`;
  const messages = rows.map(messageOf);
  if (isBefore) messages.reverse();
  return { messages, more: messages.length < (rows[0]?.candidates ?? 0) };
}
