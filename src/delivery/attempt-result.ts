import type { Rev, Seq } from '../model/ids.ts';
import type { HttpAttemptOutcome } from '../outbound/delivery-client.ts';
import type { ReplyProblem } from '../receivers/core/reply.ts';
import type { LaneRow } from '../storage/hooks/lanes.ts';
import type { AttemptRecord, LaneCursorAndFailures } from '../storage/hooks/settlement.ts';
import type { DeliveryRequest } from './request-body-builder.ts';
import { retryDelayMs, type RetryPolicy } from '../model/retry-policy.ts';
import { dueIn } from './next-attempt.ts';

/** The known outcome of a request. */
export interface AttemptResult {
  readonly request: DeliveryRequest;
  readonly outcome: HttpAttemptOutcome;
  readonly startedAt: Date;
  readonly epoch: number;
  /** For a delivery: why the receiver's reply was not posted. */
  readonly replyProblem?: ReplyProblem | null;
}

/**
 * Statuses with which a target can refuse one message for its content (the contract); every other failure counts
 * against the hook.
 */
const MESSAGE_REFUSAL_STATUSES: ReadonlySet<number | null> = new Set([400, 413, 422]);

/**
 * The progress from which a new lane continues. Drops batch marks at or before the cursor, which an older version of
 * the server may have left in the hook's row.
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

/** A mark in the log, or null once a cursor has reached it. */
function markIfAhead<Mark extends Seq | Rev>(mark: Mark | null, cursor: Mark | null): Mark | null {
  return mark !== null && cursor !== null && mark > cursor ? mark : null;
}

/** A lane's position: it has finished every message and every event up to here. */
export type LanePosition = Pick<LaneCursorAndFailures, 'cursor' | 'eventCursor'>;

/** The lane's position once a request is finished. */
export function positionAfter(
  { cursor, eventCursor }: LanePosition,
  { last, rev, lastRev }: DeliveryRequest,
): LanePosition {
  return rev > 0 ? { cursor, eventCursor: lastRev } : { cursor: last, eventCursor };
}

/** The progress fields at a new position, without the marks that the lane has reached. */
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

/** The health after one more failure; the retry policy or the target sets the time of the next attempt. */
export function healthAfterFailure(
  progress: LaneCursorAndFailures,
  { outcome, startedAt: at }: AttemptResult,
  retryPolicy: RetryPolicy,
): Pick<LaneCursorAndFailures, 'failures' | 'failingSince' | 'nextAttemptAt'> {
  const failures = progress.failures + 1;
  const delayMs = retryDelayMs(retryPolicy, { failures, retryAfterMs: outcome.retryAfterMs }, Math.random());
  return { failures, failingSince: progress.failingSince ?? at, nextAttemptAt: dueIn(delayMs) };
}

/** True when the target refused the request, perhaps only because of its content. */
export function isMessageRefused(outcome: HttpAttemptOutcome): boolean {
  return !outcome.delivered && MESSAGE_REFUSAL_STATUSES.has(outcome.code);
}

/** The record for the delivery log; `attempt` counts from 1. */
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
