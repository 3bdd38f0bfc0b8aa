import type { Seq } from '../model/ids.ts';
import type { HttpAttemptOutcome } from '../outbound/delivery-client.ts';
import type { AttemptRecord, LaneCursorAndFailures, Settlement } from '../storage/hooks/settlement.ts';
import type { RetryQueue } from './retry-queue.ts';
import type { DeliveryCounts } from './delivery-counts.ts';
import type { ProgressTracker } from './progress-tracker.ts';
import type { AttemptResult } from './attempt-result.ts';
import type { SlowStart } from './slow-start.ts';
import type { RequestBodyBuilder } from './request-body-builder.ts';
import type { EventRequestBuilder } from './events/event-request-builder.ts';
import type { RetryPolicy } from '../model/retry-policy.ts';
import type { Sender } from './sender.ts';
import type { LaneLimiter } from './lane-limiter.ts';

/** Why a lane stands still for a while. */
export interface Delay {
  readonly ms: number;
  /** True: the word of a new message does not end it. */
  readonly ignoreWakeups: boolean;
}

/** In which order a lane sends. */
export interface DeliveryStrategy {
  /** Whether there is anything to do now or later. */
  readonly hasPendingWork: boolean;
  /** The head moved on while it runs. */
  wake(): void;
  /** Sends what may be sent until nothing is left (null) or there is something to wait for. */
  run(): Promise<Delay | null>;
}

/** What a lane lends to its course. */
export interface StrategyDeps {
  /** Messages of one request at most. */
  readonly maxMessagesPerRequest: number;
  readonly retryPolicy: RetryPolicy;
  readonly limiter: LaneLimiter;
  readonly requests: RequestBodyBuilder;
  /** Null: the hook asks for no events. */
  readonly events: EventRequestBuilder | null;
  readonly sender: Sender;
  readonly tracker: ProgressTracker;
  readonly retryQueue: RetryQueue;
  readonly slowStart: SlowStart;
  readonly counts: DeliveryCounts;
  readonly isLaneActive: () => boolean;
  /** The newest seq that the lane was told of. */
  readonly head: () => Seq;
  /** There is nothing to read behind this seq after all, when the lane was told of no more than `expectedHead` meanwhile. */
  readonly lowerHeadAfterEmptyRead: (to: Seq, expectedHead: Seq) => void;
  /** Reads the hook's row again in a moment: messages that it had still to deliver were removed. */
  readonly reloadHook: () => void;
  /** A target answered 410. True: the hook goes, or was changed; false: it could not be removed. */
  readonly tryHandleGone: (goneResult: AttemptResult) => Promise<boolean>;
  /** Told of each failure that counts: for the log, and for the notice of a hook that is parked. */
  readonly onCountedFailure: (outcome: HttpAttemptOutcome, settlement: Settlement) => void;
  /** Told of what was thrown while other requests are under way; the lane rests after them. */
  readonly onError: (error: unknown) => void;
  /** Told of each message that is given up. */
  readonly onDeadLetter: (deadLetterRecord: AttemptRecord) => void;
}

/** Rest after something on our side failed (the database is away, the lease has lapsed, no connection was free). */
export const ERROR_DELAY: Delay = { ms: 1_000, ignoreWakeups: true };

/** Failures in a row that make an outage of it: what follows begins slowly. */
const OUTAGE_FAILURES = 2;

/** Adapts the ramp to the outcome of an attempt; true when an outage has ended with it. */
export function updateSlowStartDetectingRecovery(
  slowStart: SlowStart,
  progressBefore: LaneCursorAndFailures,
  delivered: boolean,
): boolean {
  if (!delivered) return false;
  const outage = progressBefore.failures >= OUTAGE_FAILURES;
  if (outage) slowStart.begin();
  else slowStart.grow();
  return outage;
}
