import type { HookId, Rev, Seq } from '../../model/ids.ts';

/**
 * The outcome of an attempt. Two outcomes stand for no request. `dead_lettered`: the hook gave the message up, since
 * the target refuses only this one. `skipped`: the messages were too old for their hook.
 */
type AttemptOutcome = 'delivered' | 'failed' | 'dead_lettered' | 'skipped';

/** The delivery log's row of one attempt. */
export interface AttemptRecord {
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  /** The revs of events, whose seqs are those of the changed messages; 0 and null for messages. */
  readonly rev: Rev | 0;
  readonly lastRev: Rev | null;
  /** 1 for the first attempt of this message; each retry adds 1. */
  readonly attempt: number;
  readonly at: Date;
  readonly outcome: AttemptOutcome;
  /**
   * Why the attempt failed, or the messages were skipped; for a delivered message, why the receiver's reply was not
   * posted.
   */
  readonly category: string | null;
  readonly code: number | null;
  readonly durationMs: number;
}

/** The range of a retry: messages, whose revs are 0, or events, whose seqs are 0. */
export interface RetryRange {
  readonly seq: Seq | 0;
  readonly lastSeq: Seq | 0;
  readonly rev: Rev | 0;
  readonly lastRev: Rev | 0;
}

/** The key of a row of `delivery_retry`. */
export type RetryKey = Pick<RetryRange, 'seq' | 'rev'>;

/**
 * A retry row: a request that the lane retries outside the log's order. A failed batch and a single requested message
 * can begin with the same message. They share one row, with the range of the batch. A shorter range replaces the row's
 * range only if `attempts` is 0: then the messages of the batch are sent one by one from now on.
 */
export interface RetryRangeUpdate extends RetryRange {
  readonly attempts: number;
  /** Null: the request has ended, and its row is deleted. */
  readonly nextAt: Date | null;
}

/** The position of a lane, and its failure state. */
export interface LaneCursorAndFailures {
  /** Every message up to this seq is delivered, skipped, dead-lettered, or has a row in `delivery_retry`. */
  readonly cursor: Seq;
  /** The cursor for events, by rev; null: the hook asks for none. */
  readonly eventCursor: Rev | null;
  /** The number of failed attempts since the last successful one. */
  readonly failures: number;
  readonly failingSince: Date | null;
  readonly nextAttemptAt: Date | null;
  /** How often the target refused the next message or event for its content. */
  readonly rejections: number;
  /** The end of a failed batch, which the lane retries unchanged; the batch begins after the cursor. */
  readonly batchLastSeq: Seq | null;
  /** The lane sends each message up to this seq alone, since the target refused a batch of them. */
  readonly unbatchedUntil: Seq | null;
  /** Like `batchLastSeq` and `unbatchedUntil`, but for events, by rev. */
  readonly batchLastRev: Rev | null;
  readonly unbatchedUntilRev: Rev | null;
}

/**
 * The outcomes of a lane's attempts. All values are absolute, so that writing them twice has the same effect as once.
 */
export interface Settlement extends LaneCursorAndFailures {
  readonly hookId: HookId;
  readonly generation: number;
  readonly epoch: number;
  /** The attempts in the order in which they were made; empty if the hook skips every message. */
  readonly attempts: readonly AttemptRecord[];
  /** The retry rows to write or delete, at most one for each seq or rev. */
  readonly retries: readonly RetryRangeUpdate[];
}
