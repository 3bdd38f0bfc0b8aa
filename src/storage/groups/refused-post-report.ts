import type { ConversationId } from '../../model/ids.ts';
import type { ConnectionTarget } from '../db/connection.ts';
import { withReadOnlyTransaction } from '../db/read-only.ts';

/** A group whose posts were refused lately. */
export interface RefusingGroup {
  readonly conversationId: ConversationId;
  /**
   * All refused posts since `firstAt` for those reasons that also occurred within the report's hours (`withinHours`).
   */
  readonly posts: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
  /** The User-Agent of the newest refused post. */
  readonly userAgent: string | null;
  readonly sentence: string;
}

export interface RefusedPostReport {
  /** The number of groups with refused posts, including those that `maxGroups` leaves out. */
  readonly groupCount: number;
  /** The groups with the newest refused posts come first. */
  readonly groups: readonly RefusingGroup[];
}

interface ReportBounds {
  /** The report lists only groups with a refused post in this number of hours. */
  readonly withinHours: number;
  readonly maxGroups: number;
  readonly timeoutMs: number;
}

/** Reads the report over a connection of its own, in a read-only transaction. */
export function reportRefusedPosts(
  target: ConnectionTarget,
  { withinHours, maxGroups, timeoutMs }: ReportBounds,
): Promise<RefusedPostReport> {
  return withReadOnlyTransaction(target, timeoutMs, async (tx) => {
    const rows = await tx<(RefusingGroup & { count: number })[]>`
      select conversation_id as "conversationId", sum(posts)::bigint as posts, min(first_at) as "firstAt",
        max(last_at) as "lastAt", (array_agg(user_agent order by last_at desc, fingerprint))[1] as "userAgent",
        (array_agg(sentence order by last_at desc, fingerprint))[1] as sentence, count(*) over ()::int as count
      from refused_post where last_at > now() - make_interval(hours => ${withinHours})
      group by conversation_id order by max(last_at) desc, conversation_id limit ${maxGroups}`;
    return { groupCount: rows[0]?.count ?? 0, groups: rows };
  });
}
