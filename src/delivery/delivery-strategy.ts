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

/** A lane's pause. */
export interface Delay {
  readonly ms: number;
  /** True: the notification of a new message does not end the pause. */
  readonly ignoreWakeups: boolean;
}

/** The order in which a lane sends. */
export interface DeliveryStrategy {
  /** Whether there is anything to do now or later. */
  readonly hasPendingWork: boolean;
  /**
   * Makes a running strategy look for work again: the head moved, an event came, or the lane was resumed or retired.
   */
  wake(): void;
  /** Sends until nothing is left (null) or it must wait. */
  run(): Promise<Delay | null>;
}

/** The lane's parts that a strategy uses. */
export interface StrategyDeps {
  /** Bound of messages in one request. */
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
  /** The newest seq that the lane knows of. */
  readonly head: () => Seq;
  /**
   * Called when the lane found no message after `to`. Lowers the head to `to`, unless a notification raised the head
   * above `expectedHead` meanwhile, and reads the hook's row again in a moment.
   */
  readonly lowerHeadAfterEmptyRead: (to: Seq, expectedHead: Seq) => void;
  /** Reads the hook's row again in a moment: a retention rule removed messages of its backlog. */
  readonly reloadHook: () => void;
  /** A target answered 410. True: the hook was removed or changed; false: it could not be removed. */
  readonly tryHandleGone: (goneResult: AttemptResult) => Promise<boolean>;
  /** Called for each failure that counts against the hook: logs it, and parks the hook when that is due. */
  readonly onCountedFailure: (outcome: HttpAttemptOutcome, settlement: Settlement) => void;
  /** Called with an exception while requests are in flight; the lane pauses once they have ended. */
  readonly onError: (error: unknown) => void;
  /** Called for each dead-lettered message. */
  readonly onDeadLetter: (deadLetterRecord: AttemptRecord) => void;
}

/** Pause after a failure on our side: the database is unreachable, the lease has lapsed, or no connection was free. */
export const ERROR_DELAY: Delay = { ms: 1_000, ignoreWakeups: true };

/** Failures in a row that count as an outage: after it the lane uses a slow start. */
const OUTAGE_FAILURES = 2;

/** Adapts the slow start to an attempt's outcome; true when the attempt ended an outage. */
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
