import type { AttemptRecord, LaneCursorAndFailures } from '../storage/hooks/settlement.ts';
import { discardRetriesPastCursor, sendRetry } from './retry-sender.ts';
import {
  updateSlowStartDetectingRecovery,
  ERROR_DELAY,
  type DeliveryStrategy,
  type StrategyDeps,
  type Delay,
} from './delivery-strategy.ts';
import {
  healthAfterFailure,
  HEALTHY,
  isMessageRefused,
  positionAfter,
  positionAndUnreachedMarks,
  toAttemptRecord,
  type AttemptResult,
  type LanePosition,
} from './attempt-result.ts';
import { OrderedRequests, type OrderedBounds } from './events/ordered-requests.ts';
import type { DeliveryRequest } from './request-body-builder.ts';
import { ClockSafeNextAttempt } from './next-attempt.ts';
import type { NotSentOrUnknown } from './sender.ts';

/** After this number of refusals of one message (400, 413 or 422) the lane probes the messages after it. */
const REJECTIONS_BEFORE_PROBING = 5;
/** The most messages after the refused one that the lane probes, once each. */
const MAX_FOLLOWING_PROBES = 3;

/**
 * Sends strictly in the order of the log, one request at a time. A failure blocks everything after it, with one
 * exception (docs/reverse-webhooks.md). A message or event is dead-lettered when its target refuses it but accepts a
 * later one.
 */
export class OrderedStrategy implements DeliveryStrategy {
  readonly #deps: StrategyDeps;
  readonly #requests: OrderedRequests;
  /**
   * True: the last request came from a retry row. Retry rows and requests in order take turns, so that neither kind
   * waits until the other has none left.
   */
  #lastWasFromRetryQueue = false;
  #cachedNextAttempt: ClockSafeNextAttempt | null = null;
  /** True: the hook has no retry row for messages or events after its cursors. */
  #retriesPastCursorDiscarded = false;

  constructor(deps: StrategyDeps) {
    this.#deps = deps;
    this.#requests = new OrderedRequests(deps.requests, deps.events);
  }

  get hasPendingWork(): boolean {
    return this.#hasBacklog || this.#deps.retryQueue.hasPendingWork;
  }

  /** Does nothing: `run` sends one request at a time, and checks for new work after each one anyway. */
  wake(): void {}

  async run(): Promise<Delay | null> {
    const { retryQueue, isLaneActive } = this.#deps;
    if (!this.#retriesPastCursorDiscarded && retryQueue.rowCount > 0) {
      const delay = await discardRetriesPastCursor(this.#deps);
      if (delay !== null) return delay;
    }
    this.#retriesPastCursorDiscarded = true;
    while (isLaneActive()) {
      const waitMs = this.#hasBacklog ? this.#inOrderWaitMs() : null;
      const retryDueMs = retryQueue.waitMs;
      const isFromRetryQueue = retryDueMs === 0 && !(waitMs === 0 && this.#lastWasFromRetryQueue);
      if (waitMs !== 0 && retryDueMs !== 0) return earlierDelay(waitMs, retryDueMs);
      this.#lastWasFromRetryQueue = isFromRetryQueue;
      const delay = isFromRetryQueue ? await sendRetry(this.#deps) : await this.#sendNextInOrder();
      if (delay !== null) return delay;
    }
    return null;
  }

  get #hasBacklog(): boolean {
    const { cursor, eventCursor } = this.#deps.tracker.progress;
    return cursor < this.#deps.head() || (this.#deps.events?.mayHaveEventsAfter(eventCursor!) ?? false);
  }

  /** Milliseconds until the lane may send the next request after its cursors; 0 when it may send now. */
  #inOrderWaitMs(): number {
    const { tracker, retryPolicy } = this.#deps;
    const at = tracker.progress.nextAttemptAt;
    if (at === null) return 0;
    if (this.#cachedNextAttempt?.at !== at) this.#cachedNextAttempt = new ClockSafeNextAttempt(at, retryPolicy);
    return this.#cachedNextAttempt.waitMs();
  }

  /** Sends the next request, or skips messages. */
  async #sendNextInOrder(): Promise<Delay | null> {
    const { limiter, tracker } = this.#deps;
    const slot = await limiter.acquire();
    if (slot === null) return ERROR_DELAY;
    let result: AttemptResult | NotSentOrUnknown | 'skipped' | 'empty';
    // The lane reads the message only once it has a slot. So a waiting lane holds no text in memory, and the text is
    // current at the attempt.
    try {
      result = await this.#readAndSendNext(tracker.progress, this.#bounds());
    } finally {
      limiter.release(slot);
    }
    if (result === 'skipped' || result === 'cancelled') return null;
    if (result === 'unknown' || result === 'empty') return ERROR_DELAY;
    return this.#handleResult(result);
  }

  /**
   * The bounds of the next request. A failed batch is sent again unchanged; if it was refused (400, 413 or 422), its
   * messages are sent one by one.
   */
  #bounds(): OrderedBounds {
    const { maxMessagesPerRequest, tracker, slowStart } = this.#deps;
    const { cursor, eventCursor, failures, batchLastSeq, unbatchedUntil, batchLastRev, unbatchedUntilRev } =
      tracker.progress;
    const max = Math.min(maxMessagesPerRequest, slowStart.maxBatchOrInFlight);
    const isSingle = unbatchedUntil !== null && cursor < unbatchedUntil;
    const isSingleEvent = unbatchedUntilRev !== null && eventCursor! < unbatchedUntilRev;
    return {
      maxMessages: batchLastSeq !== null ? Number.POSITIVE_INFINITY : isSingle ? 1 : max,
      resendRangeEnd: batchLastSeq,
      maxEvents: batchLastRev !== null ? Number.POSITIVE_INFINITY : isSingleEvent ? 1 : max,
      resendRangeEndRev: batchLastRev,
      // A target that fails is likely to fail again, so the lane reads no messages beyond this request.
      noReadAhead: failures > 0,
    };
  }

  async #readAndSendNext(
    position: LanePosition,
    bounds: OrderedBounds,
  ): Promise<AttemptResult | NotSentOrUnknown | 'skipped' | 'empty'> {
    const { requests, sender, lowerHeadAfterEmptyRead, head } = this.#deps;
    const cached = bounds.resendRangeEnd === null ? this.#requests.peek(position) : null;
    if (cached !== null) return sender.send(cached, requests.idOf(cached));
    const headBefore = head();
    const { skippedTo, request } = await this.#requests.next(position, bounds);
    if (request !== null) return sender.send(request, requests.idOf(request));
    if (skippedTo !== null) return this.#skip(skippedTo);
    // All messages up to the head are sent: the lane searched only for an event, and found none.
    if (position.cursor >= headBefore) return 'skipped';
    // A notification announced a seq that the query does not see yet. A later notification or the sweep wakes the lane
    // again.
    lowerHeadAfterEmptyRead(position.cursor, headBefore);
    return 'empty';
  }

  #skip(to: LanePosition): 'skipped' | 'cancelled' | 'unknown' {
    const { sender, tracker, isLaneActive } = this.#deps;
    // The lane was suspended or retired meanwhile, perhaps since the hook was changed: the hook may want these messages
    // now.
    if (!isLaneActive()) return 'cancelled';
    const epoch = sender.usableLeaseEpoch;
    if (epoch === null) return 'unknown';
    // Resets the count of refusals, since the refused message is among the skipped ones.
    tracker.settle(
      { ...positionAndUnreachedMarks(tracker.progress, to), rejections: 0 },
      { leaseEpoch: epoch, attempts: [] },
    );
    return 'skipped';
  }

  #handleResult(result: AttemptResult): Delay | null | Promise<Delay | null> {
    if (!result.outcome.delivered) return this.#onFailed(result);
    return this.#onDelivered(result, positionAfter(this.#deps.tracker.progress, result.request), []);
  }

  /**
   * Settles a delivered request. `deadLetters`: earlier messages that are given up because the receiver refused them
   * and took this one. `position`: the lane's position after this request.
   */
  #onDelivered(
    result: AttemptResult,
    position: LanePosition,
    deadLetters: readonly AttemptRecord[],
  ): Delay | null | Promise<null> {
    const { tracker, slowStart, counts, maxMessagesPerRequest } = this.#deps;
    const before = tracker.progress;
    const record = toAttemptRecord(result, deadLetters.length > 0 ? 1 : before.failures + 1);
    counts.add(record);
    updateSlowStartDetectingRecovery(slowStart, before, true);
    const progressChange = {
      ...positionAndUnreachedMarks(before, position),
      ...HEALTHY,
      rejections: 0,
      batchLastSeq: null,
      batchLastRev: null,
    };
    const attempts = deadLetters.length > 0 ? [...deadLetters, record] : [record];
    for (const deadLetter of deadLetters) this.#deps.onDeadLetter(deadLetter);
    tracker.settle(progressChange, { leaseEpoch: result.leaseEpoch, attempts });
    const pacingMs = maxMessagesPerRequest === 1 ? slowStart.pacingMs : 0;
    if (pacingMs > 0) return { ms: pacingMs, ignoreWakeups: true };
    return tracker.waitForCapacity()?.then(() => null) ?? null;
  }

  async #onFailed(result: AttemptResult): Promise<Delay | null> {
    const { tracker, counts, retryPolicy, maxMessagesPerRequest, tryHandleGone } = this.#deps;
    const { request, outcome, leaseEpoch: epoch } = result;
    const before = tracker.progress;
    const isGone = outcome.code === 410;
    if (isGone && (await tryHandleGone(result))) return null;
    const record = toAttemptRecord(result, before.failures + 1);
    if (!isGone) counts.add(record);
    const isRefused = isMessageRefused(outcome);
    if (isRefused && isRange(request)) {
      // One message or event of the batch may be at fault: the lane sends each in a request of its own, without a
      // delay.
      const unbatchedMarks =
        request.rev > 0
          ? { batchLastRev: null, unbatchedUntilRev: request.lastRev }
          : { batchLastSeq: null, unbatchedUntil: request.last };
      tracker.settle(unbatchedMarks, { leaseEpoch: epoch, attempts: [record] });
      return null;
    }
    const progressChange = {
      ...healthAfterFailure(before, result, retryPolicy),
      rejections: before.rejections + (isRefused ? 1 : 0),
      ...failedBatchMark(before, request, maxMessagesPerRequest),
    };
    this.#deps.onCountedFailure(outcome, tracker.settle(progressChange, { leaseEpoch: epoch, attempts: [record] }));
    return isRefused && progressChange.rejections >= REJECTIONS_BEFORE_PROBING ? this.#probeFollowing(result) : null;
  }

  /**
   * Finds out whether the first pending request itself is at fault, after the target refused it at least five times.
   * The lane offers the next messages, at most three, once each:
   * - If the target takes one, the lane dead-letters those before it: all of them were refused, and would now be out of
   *   order.
   * - If it refuses all, or another failure occurs, the hook is at fault.
   */
  async #probeFollowing(firstRefusal: AttemptResult): Promise<Delay | null> {
    const { limiter, requests, sender, tracker, counts } = this.#deps;
    const refused = [firstRefusal];
    let position = positionAfter(tracker.progress, firstRefusal.request);
    while (refused.length <= MAX_FOLLOWING_PROBES && this.#deps.isLaneActive()) {
      const slot = await limiter.acquire();
      if (slot === null) return ERROR_DELAY;
      let result: AttemptResult | NotSentOrUnknown;
      try {
        const { skippedTo, request } = await this.#requests.next(position, PROBE_BOUNDS);
        if (request === null && skippedTo === null) return null;
        position = request === null ? skippedTo! : positionAfter(position, request);
        if (request === null) continue;
        result = await sender.send(request, requests.idOf(request));
      } finally {
        limiter.release(slot);
      }
      if (typeof result === 'string') return result === 'cancelled' ? null : ERROR_DELAY;
      if (result.outcome.delivered)
        return this.#onDelivered(
          result,
          position,
          refused.map((one) => toDeadLetter(one, result.startedAt)),
        );
      const record = toAttemptRecord(result, 1);
      counts.add(record);
      tracker.settle({}, { leaseEpoch: result.leaseEpoch, attempts: [record] });
      if (!isMessageRefused(result.outcome)) return null;
      refused.push(result);
    }
    return null;
  }
}

/** A probe has one message or event per request. */
const PROBE_BOUNDS = {
  maxMessages: 1,
  resendRangeEnd: null,
  maxEvents: 1,
  resendRangeEndRev: null,
  noReadAhead: true,
} as const;

function isRange({ first, last, rev, lastRev }: DeliveryRequest): boolean {
  return rev > 0 ? rev < lastRev! : first < last;
}

/** The mark that makes the lane send a failed batch again unchanged: the last seq or rev of the batch. */
function failedBatchMark(
  before: LaneCursorAndFailures,
  request: DeliveryRequest,
  batchSize: number,
): Partial<LaneCursorAndFailures> {
  if (request.rev > 0) {
    const isBatch = batchSize > 1 && before.unbatchedUntilRev === null;
    return { batchLastRev: isBatch || before.batchLastRev !== null ? request.lastRev : null };
  }
  const isBatch = batchSize > 1 && before.unbatchedUntil === null;
  return { batchLastSeq: isBatch || before.batchLastSeq !== null ? request.last : null };
}

/** The delivery log's row for a dead-lettered message, with the status of the answer that refused it. */
function toDeadLetter(refused: AttemptResult, at: Date): AttemptRecord {
  return { ...toAttemptRecord(refused, 0), outcome: 'dead_lettered', at };
}

/** The shorter one of two waits, in milliseconds; null: there is nothing to wait for. */
function earlierDelay(waitMs: number | null, retryDueMs: number | null): Delay | null {
  if (waitMs === null && retryDueMs === null) return null;
  return {
    ms: Math.min(waitMs ?? Number.POSITIVE_INFINITY, retryDueMs ?? Number.POSITIVE_INFINITY),
    ignoreWakeups: waitMs !== null,
  };
}
