import type { HookId, LogEpoch, Rev, Seq } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';

/** A row of the delivery log. */
export interface LoggedAttempt {
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  /** The log epoch of the first message; 0 if a retention rule removed that message. */
  readonly logEpoch: LogEpoch;
  /** The first and the last rev of events; 0 and null for messages. */
  readonly rev: Rev | 0;
  readonly lastRev: Rev | null;
  readonly attempt: number;
  readonly at: Date;
  readonly outcome: string;
  readonly category: string | null;
  readonly code: number | null;
  readonly durationMs: number;
}

/** A position in a hook's delivery log, newest first: the last row of a page, after which the next page begins. */
export type LogPosition = Pick<LoggedAttempt, 'at' | 'firstSeq' | 'rev' | 'attempt'>;

/**
 * A page of a hook's delivery log, newest first. Rows of the same time are sorted by seq, rev and attempt, so that no
 * row appears on two pages.
 */
export async function readLogPage(
  sql: Sql,
  hookId: HookId,
  page: { before: LogPosition | null; limit: number },
): Promise<LoggedAttempt[]> {
  const { before, limit } = page;
  return sql<LoggedAttempt[]>`
    select seq as "firstSeq", last_seq as "lastSeq", rev, last_rev as "lastRev", attempt, at, outcome, category, code,
      duration_ms as "durationMs", coalesce((
        select m.epoch from message m where m.conversation_id = d.conversation_id and m.seq = d.seq), 0) as "logEpoch"
    from delivery_attempt d
    where hook_id = ${hookId}
      ${before === null ? sql`` : sql`and (at, seq, rev, attempt) < (${before.at}, ${before.firstSeq}, ${before.rev}, ${before.attempt})`}
    order by at desc, seq desc, rev desc, attempt desc limit ${limit}`;
}
