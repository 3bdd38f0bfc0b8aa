import type { Rev, Seq } from '../model/ids.ts';
import { MAX_RETRY_ROWS, type RetryRangeWithAttempts } from '../storage/hooks/retries.ts';
import type { LaneCursorAndFailures, RetryKey, RetryRange, RetryRangeUpdate } from '../storage/hooks/settlement.ts';
import { UnorderedEvents, UnorderedMessages, type UnorderedSource } from './events/unordered-sources.ts';
import {
  discardRetryRow,
  eventRange,
  messageRange,
  retryRecordsAfterAttempt,
  attemptRow,
  updateQueueReturningRetries,
} from './retry-sender.ts';
import {
  updateSlowStartDetectingRecovery,
  ERROR_DELAY,
  type DeliveryStrategy,
  type StrategyDeps,
  type Delay,
} from './delivery-strategy.ts';
import type { SlotKind } from './lane-limiter.ts';
import type { InFlightRange, RequestRange } from './unordered-in-flight-window.ts';
import {
  positionAndUnreachedMarks,
  healthAfterFailure,
  HEALTHY,
  toAttemptRecord,
  type AttemptResult,
} from './attempt-result.ts';
import type { DeliveryRequest } from './request-body-builder.ts';
import { ClockSafeNextAttempt } from './next-attempt.ts';
import type { NotSentOrUnknown } from './sender.ts';

/** The most requests of one hook with `order: none` in flight at once (docs/reverse-webhooks.md). */
export const MAX_IN_FLIGHT = 16;
/**
 * After this number of failures in a row the lane sends no new messages, only retries: the target is at fault, not a
 * message (docs/reverse-webhooks.md).
 */
const SUCCESSIVE_FAILURES_BLOCKING_NEW = 20;

type Source = UnorderedSource<Seq> | UnorderedSource<Rev>;

/**
 * Sends several requests at once, in no order. A failed request becomes a retry row, and blocks nothing after it. The
 * cursor stays before a request in flight. Once more than 16 later requests have completed, the lane writes a retry row
 * for that request, and the cursor passes it. Events (edits and deletions) take turns with messages, and have a cursor
 * of their own.
 */
export class UnorderedStrategy implements DeliveryStrategy {
  readonly #deps: StrategyDeps;
  readonly #messages: UnorderedMessages;
  readonly #events: UnorderedEvents | null;
  readonly #sources: readonly Source[];
  /** The source (messages or events) that was read last; the other source is read next if it has a backlog. */
  #lastSource: Source;
  #inFlightCount = 0;
  /**
   * Requests in flight that started after the last outage ended. The slow start does not count older ones, which may
   * hang.
   */
  #inFlightSinceOutage = { count: 0 };
  #wakeup = Promise.withResolvers<void>();
  #errorDelay: Delay | null = null;

  constructor(deps: StrategyDeps) {
    this.#deps = deps;
    this.#messages = new UnorderedMessages(deps);
    this.#events = deps.events === null ? null : new UnorderedEvents(deps, deps.events, deps.tracker.progress);
    this.#sources = this.#events === null ? [this.#messages] : [this.#messages, this.#events];
    this.#lastSource = this.#messages;
  }

  get hasPendingWork(): boolean {
    return this.#hasBacklog || this.#deps.retryQueue.hasPendingWork;
  }

  wake(): void {
    this.#wakeup.resolve();
  }

  async run(): Promise<Delay | null> {
    const { isLaneActive } = this.#deps;
    this.#errorDelay = null;
    for (;;) {
      this.#wakeup = Promise.withResolvers();
      try {
        while (isLaneActive() && this.#errorDelay === null && this.#nextKind !== null && this.#canStartAnother)
          await this.#startNext();
      } catch (error) {
        // While requests are in flight, `run` continues despite the exception: no other code waits for these requests.
        this.#errorDelay = ERROR_DELAY;
        if (this.#inFlightCount === 0) throw error;
        this.#deps.onError(error);
      }
      if (this.#inFlightCount === 0) return isLaneActive() ? (this.#errorDelay ?? this.#idleDelay()) : null;
      await this.#waitForWakeup();
    }
  }

  /** Waits until a request ends, a notification arrives, or a retry row is due. */
  async #waitForWakeup(): Promise<void> {
    const dueMs = this.#deps.retryQueue.waitMs;
    const timer = dueMs === null || dueMs === 0 ? undefined : setTimeout(() => this.#wakeup.resolve(), dueMs);
    await this.#wakeup.promise;
    clearTimeout(timer);
  }

  get #canStartAnother(): boolean {
    return (
      this.#inFlightCount < MAX_IN_FLIGHT && this.#inFlightSinceOutage.count < this.#deps.slowStart.maxBatchOrInFlight
    );
  }

  get #hasBacklog(): boolean {
    return this.#sources.some((source) => source.hasBacklog);
  }

  get #nextKind(): 'retry' | 'new' | null {
    if (this.#deps.retryQueue.waitMs === 0) return 'retry';
    return this.#hasBacklog && this.#newWaitMsUnlessBlocked() === 0 ? 'new' : null;
  }

  /**
   * Milliseconds until the lane may send new messages or events; null when requests in flight or retry rows must end
   * first.
   */
  #newWaitMsUnlessBlocked(): number | null {
    const { tracker, retryQueue } = this.#deps;
    const { failures, nextAttemptAt } = tracker.progress;
    const inFlightCount = this.#sources.reduce((sum, { window }) => sum + window.inFlightRequestCount, 0);
    if (retryQueue.rowCount + inFlightCount >= MAX_RETRY_ROWS) return null;
    if (this.#sources.some(({ window }) => window.isBlockedByRangeNotSent)) return null;
    if (failures < SUCCESSIVE_FAILURES_BLOCKING_NEW) return 0;
    if (retryQueue.rowCount > 0 || this.#inFlightCount > 0) return null;
    // After so many failures, a hook normally has a retry row that tests whether the receiver works again. Here it has
    // none, since it had `order: strict` until now. So a new message is the test.
    return nextAttemptAt === null ? 0 : new ClockSafeNextAttempt(nextAttemptAt, this.#deps.retryPolicy).waitMs();
  }

  #idleDelay(): Delay | null {
    const retryDueMs = this.#deps.retryQueue.waitMs;
    if (retryDueMs !== null) return { ms: retryDueMs, ignoreWakeups: false };
    if (!this.#hasBacklog) return null;
    // The lane has no retry row to wait for, but a backlog that it may not send yet: it waits a second.
    return { ms: this.#newWaitMsUnlessBlocked() ?? ERROR_DELAY.ms, ignoreWakeups: false };
  }

  /**
   * Starts the next request. The caller must await each call, so that requests leave their queues one after the other.
   */
  async #startNext(): Promise<void> {
    await this.#deps.tracker.waitForCapacity();
    if (this.#nextKind === 'retry') await this.#startRetry();
    else if (this.#nextKind === 'new') await this.#startNewOrResend();
  }

  async #startRetry(): Promise<void> {
    const { limiter, retryQueue, tracker } = this.#deps;
    const row = await retryQueue.take(
      () => tracker.flush(),
      (row) => this.#isSpilledInFlight(row),
    );
    if (row === null) return;
    const slot = await limiter.acquire();
    if (slot !== null) {
      this.#launch(this.#sendRetry(row), slot);
    } else {
      retryQueue.done('unknown');
      this.#errorDelay = ERROR_DELAY;
    }
  }

  async #startNewOrResend(): Promise<void> {
    const { limiter } = this.#deps;
    const slot = await limiter.acquire();
    if (slot === null) {
      this.#errorDelay = ERROR_DELAY;
      return;
    }
    let isLaunched = false;
    try {
      isLaunched = await this.#launchNewOrResend(slot);
    } finally {
      if (!isLaunched) limiter.release(slot);
    }
  }

  #isSpilledInFlight({ seq, rev }: RetryKey): boolean {
    if (rev === 0) return this.#messages.window.isSpilledInFlight(seq as Seq);
    return this.#events?.window.isSpilledInFlight(rev) ?? false;
  }

  /** Resolves to true when a request was launched: that request then releases the slot. */
  #launchNewOrResend(slot: SlotKind): Promise<boolean> {
    const source = this.#sources.find((each) => each !== this.#lastSource && each.hasBacklog) ?? this.#lastSource;
    this.#lastSource = source;
    // The cast is safe: the seqs of messages never reach the source of events, nor revs that of messages.
    return this.#launchFrom(source as UnorderedSource<Seq>, slot);
  }

  async #launchFrom<Num extends Seq | Rev>(source: UnorderedSource<Num>, slot: SlotKind): Promise<boolean> {
    const { window } = source;
    // A range to send again stays in `toResend` until its request is in flight, so that the cursor cannot pass it.
    const { toResend, lastRead } = window;
    const after = toResend === undefined ? lastRead : ((toResend.first - 1) as Num);
    const { skippedTo, request } = await source.read(after, toResend?.last ?? null);
    if (request === null) {
      if (skippedTo > after) this.#skip(source, skippedTo, toResend);
      else if (toResend !== undefined) this.#errorDelay = ERROR_DELAY;
      return false;
    }
    this.#launch(this.#send(request, source, window.begin(source.rangeOf(request), toResend)), slot);
    return true;
  }

  #skip<Num extends Seq | Rev>(
    { window }: UnorderedSource<Num>,
    skippedTo: Num,
    toResend: RequestRange<Num> | undefined,
  ): void {
    const { tracker, sender, isLaneActive } = this.#deps;
    // The lane was suspended or retired meanwhile, perhaps since the hook was changed: the hook may want these messages
    // now.
    if (!isLaneActive()) return;
    window.skip(skippedTo, toResend);
    const epoch = sender.usableLeaseEpoch;
    // If the epoch is null, this node may not use its lease, and so writes nothing. The lane pauses, and its next
    // settlement writes the cursor.
    if (epoch === null) this.#errorDelay = ERROR_DELAY;
    else tracker.settle(this.#cursorAndBatchMarks(), { leaseEpoch: epoch, attempts: [] });
  }

  /** Counts a request as in flight, and releases its slot when it ends. */
  #launch(request: Promise<void>, slot: SlotKind): void {
    const { limiter } = this.#deps;
    const inFlightSinceOutage = this.#inFlightSinceOutage;
    this.#inFlightCount += 1;
    inFlightSinceOutage.count += 1;
    void request
      .catch((error: unknown) => {
        // The lane sends the request again after a pause, since its outcome is unknown.
        this.#errorDelay = ERROR_DELAY;
        this.#deps.onError(error);
      })
      .finally(() => {
        this.#inFlightCount -= 1;
        inFlightSinceOutage.count -= 1;
        limiter.release(slot);
        this.#wakeup.resolve();
      });
  }

  async #send<Num extends Seq | Rev>(
    request: DeliveryRequest,
    { window }: UnorderedSource<Num>,
    range: InFlightRange<Num>,
  ): Promise<void> {
    const { sender, requests, tryHandleGone } = this.#deps;
    let isOutcomeKnown = false;
    try {
      const result = await sender.send(request, requests.idOf(request), () => {
        const wasFull = window.isBlockedByRangeNotSent;
        range.hasSendingBegun = true;
        if (wasFull) this.#wakeup.resolve();
      });
      if (result === 'unknown') this.#errorDelay = ERROR_DELAY;
      isOutcomeKnown = typeof result !== 'string' && !(result.outcome.code === 410 && (await tryHandleGone(result)));
      if (!isOutcomeKnown) return;
      // `complete` must come before the settlement (in `#handleResult`), so that the settlement's cursor can pass this
      // request.
      window.complete(range);
      if (range.hasRetryRow) this.#deps.retryQueue.dropReplacedRow(retryRangeOf(request));
      await this.#handleResult(result as AttemptResult, range.hasRetryRow);
    } finally {
      if (!isOutcomeKnown) window.requeueUnknownOutcome(range);
    }
  }

  /** `hasRetryRow`: the lane wrote a retry row for the request while it was in flight. */
  async #handleResult(result: AttemptResult, hasRetryRow: boolean): Promise<void> {
    const { tracker, counts } = this.#deps;
    const record = toAttemptRecord(result, 1);
    if (result.outcome.code !== 410) counts.add(record);
    const { leaseEpoch: epoch } = result;
    const row = { ...retryRangeOf(result.request), attempts: 0 };
    if (result.outcome.delivered) {
      const outageEnded = this.#updateSlowStart(true);
      const retries = [
        ...(hasRetryRow ? retryRecordsAfterAttempt(this.#deps, row, result) : []),
        ...this.#spillToRetries(),
      ];
      tracker.settle(
        { ...this.#cursorAndBatchMarks(), ...HEALTHY },
        { leaseEpoch: epoch, attempts: [record], retries },
      );
      if (outageEnded) await this.#retryAllNow();
      return;
    }
    const ownRetries = retryRecordsAfterAttempt(this.#deps, row, result);
    this.#deps.retryQueue.noteAddedRows(ownRetries.length, ownRetries[0]!.nextAt!);
    const retries = [...ownRetries, ...this.#spillToRetries()];
    const health = this.#laneHealthAfterFailure(result);
    this.#deps.onCountedFailure(
      result.outcome,
      tracker.settle({ ...this.#cursorAndBatchMarks(), ...health }, { leaseEpoch: epoch, attempts: [record], retries }),
    );
  }

  #spillToRetries(): readonly RetryRangeUpdate[] {
    const rows = this.#sources.flatMap(({ window }) => window.spillToRetries());
    if (rows.length > 0) this.#deps.retryQueue.noteAddedRows(rows.length, rows[0]!.nextAt!);
    return rows;
  }

  async #sendRetry(row: RetryRangeWithAttempts): Promise<void> {
    const { retryQueue, tracker, counts } = this.#deps;
    let result: AttemptResult | NotSentOrUnknown | 'obsolete' = 'unknown';
    try {
      result = await attemptRow(this.#deps, row);
      if (typeof result !== 'string' && result.outcome.code === 410 && (await this.#deps.tryHandleGone(result)))
        result = 'cancelled';
    } finally {
      if (result === 'unknown' || result === 'cancelled') retryQueue.done('unknown');
    }
    if (result === 'unknown') this.#errorDelay = ERROR_DELAY;
    if (result === 'obsolete') this.#errorDelay = discardRetryRow(this.#deps, row) ?? this.#errorDelay;
    if (typeof result === 'string') return;
    const record = toAttemptRecord(result, row.attempts + 1);
    if (result.outcome.code !== 410) counts.add(record);
    const outageEnded = this.#updateSlowStart(result.outcome.delivered);
    const settlementDetails = {
      leaseEpoch: result.leaseEpoch,
      attempts: [record],
      retries: updateQueueReturningRetries(this.#deps, row, result),
    };
    if (result.outcome.delivered) tracker.settle(HEALTHY, settlementDetails);
    else
      this.#deps.onCountedFailure(
        result.outcome,
        tracker.settle(this.#laneHealthAfterFailure(result), settlementDetails),
      );
    if (outageEnded) await this.#retryAllNow();
  }

  /** Adapts the slow start to the outcome of an attempt. Returns true when this attempt ended an outage. */
  #updateSlowStart(delivered: boolean): boolean {
    const { slowStart, tracker } = this.#deps;
    const outageEnded = updateSlowStartDetectingRecovery(slowStart, tracker.progress, delivered);
    if (outageEnded) this.#inFlightSinceOutage = { count: 0 };
    return outageEnded;
  }

  /**
   * Makes all retry rows due, since the target accepts deliveries again. If the write fails, each row keeps its due
   * time.
   */
  async #retryAllNow(): Promise<void> {
    try {
      await this.#deps.retryQueue.retryAllNowUnlessRecent();
    } catch (error) {
      this.#errorDelay = ERROR_DELAY;
      this.#deps.onError(error);
    }
  }

  #laneHealthAfterFailure(result: AttemptResult): Partial<LaneCursorAndFailures> {
    const { tracker, retryPolicy, retryQueue } = this.#deps;
    const health = healthAfterFailure(tracker.progress, result, retryPolicy);
    return { ...health, nextAttemptAt: retryQueue.nextWaitingRetryAt ?? health.nextAttemptAt };
  }

  /** The lane's new progress. Everything up to its cursors is delivered, skipped or in a retry row. */
  #cursorAndBatchMarks(): Partial<LaneCursorAndFailures> {
    const position = { cursor: this.#messages.window.cursor, eventCursor: this.#events?.window.cursor ?? null };
    return { ...positionAndUnreachedMarks(this.#deps.tracker.progress, position), rejections: 0 };
  }
}

/** The range that identifies a request's retry row. */
function retryRangeOf({ first, last, rev, lastRev }: DeliveryRequest): RetryRange {
  return rev > 0 ? eventRange({ first: rev as Rev, last: lastRev! }) : messageRange({ first, last });
}
