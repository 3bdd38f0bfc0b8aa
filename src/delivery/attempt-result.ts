import type { Rev, Seq } from '../model/ids.ts';
import type { HttpAttemptOutcome } from '../outbound/delivery-client.ts';
import type { ReplyProblem } from '../receivers/core/reply.ts';
import type { LaneRow } from '../storage/hooks/lanes.ts';
import type { AttemptRecord, LaneCursorAndFailures } from '../storage/hooks/settlement.ts';
import type { DeliveryRequest } from './request-body-builder.ts';
import { retryDelayMs, type RetryPolicy } from '../model/retry-policy.ts';
import { dueIn } from './next-attempt.ts';

/** A request that was sent, with its outcome. */
export interface AttemptResult {
  readonly request: DeliveryRequest;
  readonly outcome: HttpAttemptOutcome;
  readonly startedAt: Date;
  readonly leaseEpoch: number;
  /**
   * If the request was delivered: why the receiver's reply was not posted into the group; null if it was, or if there
   * was none.
   */
  readonly replyProblem?: ReplyProblem | null;
}

/**
 * HTTP statuses with which a target can refuse one message for its content (docs/reverse-webhooks.md). Every other
 * failure counts against the hook.
 */
const MESSAGE_REFUSAL_STATUSES: ReadonlySet<number | null> = new Set([400, 413, 422]);

/**
 * The progress from which a new lane continues, read from the hook's row. Drops batch marks at or before the cursor: an
 * older version of the server may have left them in the row.
 */
export function initialProgress(row: LaneRow): LaneCursorAndFailures {
  const { cursor, eventCursor, failures, failingSince, nextAttemptAt, rejections } = row;
  const { batchLastSeq, unbatchedUntil, batchLastRev, unbatchedUntilRev } = row;
  return {
    cursor,
    eventCursor,
    failures,
    failingSince,
    nextAttemptAt,
    rejections,
    batchLastSeq: markIfAhead(batchLastSeq, cursor),
    unbatchedUntil: markIfAhead(unbatchedUntil, cursor),
    batchLastRev: markIfAhead(batchLastRev, eventCursor),
    unbatchedUntilRev: markIfAhead(unbatchedUntilRev, eventCursor),
  };
}

/** Returns the mark (a seq or a rev); null once the cursor has reached it. */
function markIfAhead<Mark extends Seq | Rev>(mark: Mark | null, cursor: Mark | null): Mark | null {
  return mark !== null && cursor !== null && mark > cursor ? mark : null;
}

/** A lane's position: it has finished every message and every event up to here. */
export type LanePosition = Pick<LaneCursorAndFailures, 'cursor' | 'eventCursor'>;

/**
 * The lane's position after this request: the cursor of its messages or of its events moves to the end of its range.
 */
export function positionAfter(
  { cursor, eventCursor }: LanePosition,
  { last, rev, lastRev }: DeliveryRequest,
): LanePosition {
  return rev > 0 ? { cursor, eventCursor: lastRev } : { cursor: last, eventCursor };
}

/** The lane's progress at a new position. A batch mark that the position has reached becomes null. */
export function positionAndUnreachedMarks(progress: LaneCursorAndFailures, { cursor, eventCursor }: LanePosition) {
  return {
    cursor,
    eventCursor,
    batchLastSeq: markIfAhead(progress.batchLastSeq, cursor),
    unbatchedUntil: markIfAhead(progress.unbatchedUntil, cursor),
    batchLastRev: markIfAhead(progress.batchLastRev, eventCursor),
    unbatchedUntilRev: markIfAhead(progress.unbatchedUntilRev, eventCursor),
  };
}

/** The health of a target that has just taken a delivery. */
export const HEALTHY = { failures: 0, failingSince: null, nextAttemptAt: null } as const;

/**
 * The hook's health after one more failure. The retry policy or the target's `Retry-After` sets the time of the next
 * attempt.
 */
export function healthAfterFailure(
  progress: LaneCursorAndFailures,
  { outcome, startedAt: at }: AttemptResult,
  retryPolicy: RetryPolicy,
): Pick<LaneCursorAndFailures, 'failures' | 'failingSince' | 'nextAttemptAt'> {
  const failures = progress.failures + 1;
  const delayMs = retryDelayMs(retryPolicy, { failures, retryAfterMs: outcome.retryAfterMs }, Math.random());
  return { failures, failingSince: progress.failingSince ?? at, nextAttemptAt: dueIn(delayMs) };
}

/** True when the target's status says that the content of the request may be at fault. */
export function isMessageRefused(outcome: HttpAttemptOutcome): boolean {
  return !outcome.delivered && MESSAGE_REFUSAL_STATUSES.has(outcome.code);
}

/** Makes the attempt's row for the delivery log. `attempt`: the number of this attempt, from 1. */
export function toAttemptRecord(
  { request, outcome, startedAt: at, replyProblem = null }: AttemptResult,
  attempt: number,
): AttemptRecord {
  return {
    firstSeq: request.first,
    lastSeq: request.last,
    rev: request.rev,
    lastRev: request.lastRev,
    attempt,
    at,
    outcome: outcome.delivered ? 'delivered' : 'failed',
    category: outcome.category ?? replyProblem,
    code: outcome.code,
    durationMs: Math.round(outcome.durationMs),
  };
}
