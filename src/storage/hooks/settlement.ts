import type { HookId, Rev, Seq } from '../../model/ids.ts';

/**
 * The outcome of a request. No attempts are `dead_lettered`, the message was given up since the target refuses it alone,
 * and `skipped`, the messages were too old for their hook.
 */
type AttemptOutcome = 'delivered' | 'failed' | 'dead_lettered' | 'skipped';

/** The delivery log's row of one attempt. */
export interface AttemptRecord {
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  /** Of events, whose seqs are those of the messages that were changed; 0 and null for messages. */
  readonly rev: Rev | 0;
  readonly lastRev: Rev | null;
  /** 1 for the first attempt of this message, counting on with each repeat. */
  readonly attempt: number;
  readonly at: Date;
  readonly outcome: AttemptOutcome;
  /** Why it failed or was skipped; of what was delivered, why the receiver's reply was not posted. */
  readonly category: string | null;
  readonly code: number | null;
  readonly durationMs: number;
}

/** What is repeated: messages, whose revs are 0, or events, whose seqs are 0. */
export interface RetryRange {
  readonly seq: Seq | 0;
  readonly lastSeq: Seq | 0;
  readonly rev: Rev | 0;
  readonly lastRev: Rev | 0;
}

/** Which row of `delivery_retry` it is. */
export type RetryKey = Pick<RetryRange, 'seq' | 'rev'>;

/**
 * A request that is repeated apart from the log's order. Two can begin with the same message, a batch that failed and that
 * message asked for by itself: they are one row, of the batch. Only with 0 attempts, when a batch goes one by one from now
 * on, does a shorter one take its place.
 */
export interface RetryRangeUpdate extends RetryRange {
  readonly attempts: number;
  /** Null: it is over, and its row goes. */
  readonly nextAt: Date | null;
}

/** How far a lane is, and what it has to remember of failures. */
export interface LaneCursorAndFailures {
  /** Everything up to here is delivered, set aside, or has a row in `delivery_retry`. */
  readonly cursor: Seq;
  /** The same of events, by rev; null: the hook asks for none. */
  readonly eventCursor: Rev | null;
  /** Failed attempts since the last that succeeded. */
  readonly failures: number;
  readonly failingSince: Date | null;
  readonly nextAttemptAt: Date | null;
  /** Times the message or event that comes next was refused for itself. */
  readonly rejections: number;
  /** The end of a batch that failed, which is repeated as it was; it begins behind the cursor. */
  readonly batchLastSeq: Seq | null;
  /** Up to here messages go one by one, since a batch of them was refused. */
  readonly unbatchedUntil: Seq | null;
  /** The same two of events, by rev. */
  readonly batchLastRev: Rev | null;
  readonly unbatchedUntilRev: Rev | null;
}

/** The outcomes of a lane's attempts: absolute values, so that writing it twice is writing it once. */
export interface Settlement extends LaneCursorAndFailures {
  readonly hookId: HookId;
  readonly generation: number;
  readonly epoch: number;
  /** In the order in which they were made; none where every message was to be left out. */
  readonly attempts: readonly AttemptRecord[];
  /** One for each seq or rev at most. */
  readonly retries: readonly RetryRangeUpdate[];
}
