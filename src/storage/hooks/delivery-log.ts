import type { DeliveryOutcome } from '../../model/delivery-outcome.ts';
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

/** The rows to select; a field that is null selects all rows. */
export interface LogFilter {
  readonly outcomes: readonly DeliveryOutcome[] | null;
  readonly since: Date | null;
  /** Only rows about this message: its deliveries and those of its events. */
  readonly seq: Seq | null;
}

const EVERY_ROW: LogFilter = { outcomes: null, since: null, seq: null };

/**
 * A page of a hook's delivery log, newest first. Rows of the same time are sorted by seq, rev and attempt, so that no
 * row appears on two pages.
 */
export async function readLogPage(
  sql: Sql,
  hookId: HookId,
  page: { before: LogPosition | null; limit: number; filter?: LogFilter },
): Promise<LoggedAttempt[]> {
  const { before, limit, filter: { outcomes, since, seq } = EVERY_ROW } = page;
  return sql<LoggedAttempt[]>`
    select seq as "firstSeq", last_seq as "lastSeq", rev, last_rev as "lastRev", attempt, at, outcome, category, code,
      duration_ms as "durationMs", coalesce((
        select m.epoch from message m where m.conversation_id = d.conversation_id and m.seq = d.seq), 0) as "logEpoch"
    from delivery_attempt d
    where hook_id = ${hookId}
      ${before === null ? sql`` : sql`and (at, seq, rev, attempt) < (${before.at}, ${before.firstSeq}, ${before.rev}, ${before.attempt})`}
      ${outcomes === null ? sql`` : sql`and outcome = any(${[...outcomes]}::text[])`}
      ${since === null ? sql`` : sql`and at >= ${since}`}
      ${
        seq === null
          ? sql``
          : // A row of a batch names only its first and last message or event.
            sql`and (seq = ${seq} or rev = 0 and seq < ${seq} and last_seq >= ${seq} or rev > 0 and exists (
              select from hook_event e
              where e.conversation_id = d.conversation_id and e.seq = ${seq} and e.rev between d.rev and d.last_rev))`
      }
    order by at desc, seq desc, rev desc, attempt desc limit ${limit}`;
}
