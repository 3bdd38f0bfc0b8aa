import type { ConversationId } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';

/** A count reads at most this many of the newest messages, to bound its cost in a large group. */
const MAX_READ_MESSAGES = 10_000;

/** The posts of programs among the newest messages of a group, with the replies of receivers of its hooks. */
interface RecentPosts {
  readonly lastPostAt: Date | null;
  /** The number of posts of the last 24 hours. */
  readonly lastDayCount: number;
}

export async function countRecentPosts(sql: Sql, id: ConversationId): Promise<RecentPosts> {
  const [row] = await sql<RecentPosts[]>`
    select max(m.sent_at) as "lastPostAt",
      (count(*) filter (where m.sent_at > now() - interval '24 hours'))::int as "lastDayCount"
    from (
      select sender_id, sent_at from message where conversation_id = ${id} order by seq desc limit ${MAX_READ_MESSAGES}
    ) m
    where m.sender_id = (select account_id from integration where conversation_id = ${id})`;
  return row!;
}
