import type { Seq } from '../model/ids.ts';
import type { HttpAttemptOutcome } from '../outbound/delivery-client.ts';
import type { AttemptRecord, LaneCursorAndFailures, Settlement } from '../storage/hooks/settlement.ts';
import type { RetryQueue } from './retry-queue.ts';
import type { DeliveryCounts } from './delivery-counts.ts';
import type { ProgressTracker } from './progress-tracker.ts';
import type { AttemptResult } from './attempt-result.ts';
import type { SlowStart } from './slow-start.ts';
import type { MessageRequestBuilder } from './request-body-builder.ts';
import type { EventRequestBuilder } from './events/event-request-builder.ts';
import type { RetryPolicy } from '../model/retry-policy.ts';
import type { Sender } from './sender.ts';
import type { LaneLimiter } from './lane-limiter.ts';

/** How long a lane pauses before it looks for work again. */
export interface Delay {
  readonly ms: number;
  /** True: the notification of a new message does not end the pause. */
  readonly ignoreWakeups: boolean;
}

/** Decides which request a lane sends next: in order, or several at once. */
export interface DeliveryStrategy {
  /** True when the lane has a backlog or retry rows, even if none of them is due now. */
  readonly hasPendingWork: boolean;
  /**
   * Makes a running strategy look for work again: the head moved, an event came, or the lane was resumed or retired.
   */
  wake(): void;
  /** Sends requests until none is left (null) or the lane must pause. */
  run(): Promise<Delay | null>;
}

/** The lane's parts that a strategy uses. */
export interface StrategyDeps {
  readonly maxMessagesPerRequest: number;
  readonly retryPolicy: RetryPolicy;
  readonly limiter: LaneLimiter;
  readonly requests: MessageRequestBuilder;
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
   * Called when the lane found no message after `to`, although its head is greater. Lowers the head to `to`, unless a
   * notification raised it above `expectedHead` meanwhile. Reads the hook's row again after a second.
   */
  readonly lowerHeadAfterEmptyRead: (to: Seq, expectedHead: Seq) => void;
  /** Reads the hook's row again after a second: a retention rule removed messages that the hook had not received. */
  readonly reloadHook: () => void;
  /**
   * Removes the hook, whose target answered 410. True: the hook was removed, or somebody changed it meanwhile. False:
   * the removal failed.
   */
  readonly tryHandleGone: (goneResult: AttemptResult) => Promise<boolean>;
  /**
   * Called for each failure that counts against the hook. Logs the failure, and parks the hook once it has failed for
   * `delivery.park-after`.
   */
  readonly onCountedFailure: (outcome: HttpAttemptOutcome, settlement: Settlement) => void;
  /** Called with an exception while requests are in flight; the lane pauses once they have ended. */
  readonly onError: (error: unknown) => void;
  readonly onDeadLetter: (deadLetterRecord: AttemptRecord) => void;
}

/**
 * Pause after a failure of this server: the database is unreachable, the lease has lapsed, or no connection was free.
 */
export const ERROR_DELAY: Delay = { ms: 1_000, ignoreWakeups: true };

/** At least this many failures in a row count as an outage. After an outage the lane uses a slow start. */
const OUTAGE_FAILURES = 2;

/** Adapts the slow start to the outcome of an attempt. Returns true when this attempt ended an outage. */
export function updateSlowStartDetectingRecovery(
  slowStart: SlowStart,
  progressBefore: LaneCursorAndFailures,
  delivered: boolean,
): boolean {
  if (!delivered) return false;
  const outage = progressBefore.failures >= OUTAGE_FAILURES;
  if (outage) slowStart.beginSlowStart();
  else slowStart.doubleLimit();
  return outage;
}
