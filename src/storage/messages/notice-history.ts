import type { AccountId, ConversationId, Rev, Seq } from '../../model/ids.ts';
import type { SenderKind } from '../../model/roles.ts';
import type { Sql } from '../db/connection.ts';
import type { NoticeChange, StoredNotice } from './changes.ts';

/**
 * Selects notices that follow a message with a seq within these bounds, both included (`afterSeq`); if there are more
 * than `limit`, the newest.
 */
interface NoticeRangeRequest {
  readonly conversationId: ConversationId;
  readonly fromSeq: Seq;
  readonly toSeq: Seq;
  readonly limit: number;
}

interface NoticeRow extends Omit<StoredNotice, 'actor'> {
  readonly rev: Rev;
  readonly actorId: AccountId | null;
  readonly actorName: string;
  readonly actorNick: string | null;
  readonly actorKind: SenderKind;
}

/** Reads the notices between two messages, in the order of their revs. `complete`: the limit left none out. */
export async function readNoticesBetween(
  sql: Sql,
  { conversationId, fromSeq, toSeq, limit }: NoticeRangeRequest,
): Promise<{ notices: readonly NoticeChange[]; complete: boolean }> {
  const rows = await sql<NoticeRow[]>`
    select n.rev, n.after_seq as "afterSeq", n.kind, n.details, n.at, a.id as "actorId", a.name as "actorName",
      a.nick as "actorNick", a.kind as "actorKind"
    from (
      select * from notice
      where conversation_id = ${conversationId} and after_seq between ${fromSeq} and ${toSeq}
      order by after_seq desc, rev desc limit ${limit + 1}
    ) n
    left join account a on a.id = n.actor_id
    order by n.after_seq desc, n.rev desc`;
  const complete = rows.length <= limit;
  return { notices: rows.slice(0, limit).reverse().map(noticeOf), complete };
}

function noticeOf(row: NoticeRow): NoticeChange {
  const { rev, actorId: id, actorName: name, actorNick: nick, actorKind, kind, details, at, afterSeq } = row;
  const actor = id === null ? null : { id, name, nick, kind: actorKind };
  return { rev, type: 'notice', notice: { kind, actor, details, at, afterSeq } };
}
