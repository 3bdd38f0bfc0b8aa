import type { AccountId, ConversationId, Seq } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';

/**
 * Moves an account's read position forward, never back and never past the newest message. Returns the position and
 * whether it moved; null for an account that is not a member.
 *
 * The commit is asynchronous: a crash of the database's machine may undo the positions of the last moments. Read
 * messages then show as unread once more. A flush to disk for every message that a member reads would slow the posts
 * down.
 */
export async function advanceReadPosition(
  sql: Sql,
  key: { conversationId: ConversationId; accountId: AccountId },
  seq: Seq,
): Promise<{ seq: Seq; moved: boolean } | null> {
  const { conversationId, accountId } = key;
  const [row] = await sql<{ seq: Seq; moved: boolean }[]>`
    with moved as (
      update membership m set read_seq = least(${seq}, h.last_seq)
      from conversation_head h
      where m.conversation_id = ${conversationId} and m.account_id = ${accountId}
        and h.conversation_id = m.conversation_id and m.read_seq < least(${seq}, h.last_seq)
        and set_config('synchronous_commit', 'off', true) = 'off'
      returning m.read_seq
    )
    select coalesce((select read_seq from moved), m.read_seq) as seq, exists (select from moved) as moved
    from membership m where m.conversation_id = ${conversationId} and m.account_id = ${accountId}`;
  return row ?? null;
}
