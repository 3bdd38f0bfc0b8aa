import type { Rev, Seq } from '../../model/ids.ts';
import type { LanePosition } from '../attempt-result.ts';
import type { StrategyDeps } from '../delivery-strategy.ts';
import type { DeliveryRequest, RequestRangeBounds } from '../request-body-builder.ts';
import { eventRange, messageRange } from '../retry-sender.ts';
import { UnorderedInFlightWindow, type RequestRange } from '../unordered-in-flight-window.ts';
import type { EventRequestBuilder } from './event-request-builder.ts';

/** What a lane does next after a seq or rev: send a request, skip numbers, or wait. */
interface NextUnorderedRequest<Num extends Seq | Rev> {
  readonly skippedTo: Num;
  readonly request: DeliveryRequest | null;
}

/**
 * What a lane with `order: none` sends: its messages or its events. Messages have seqs, events have revs, and each kind
 * has a cursor.
 */
export interface UnorderedSource<Num extends Seq | Rev> {
  readonly window: UnorderedInFlightWindow<Num>;
  readonly hasBacklog: boolean;
  /** `resendRangeEnd`: set when a request is sent again, with the same range. It is the last number of that range. */
  read(after: Num, resendRangeEnd: Num | null): Promise<NextUnorderedRequest<Num>>;
  rangeOf(request: DeliveryRequest): RequestRange<Num>;
}

const UNLIMITED = Number.POSITIVE_INFINITY;

export class UnorderedMessages implements UnorderedSource<Seq> {
  readonly window: UnorderedInFlightWindow<Seq>;
  readonly #deps: StrategyDeps;

  constructor(deps: StrategyDeps) {
    this.#deps = deps;
    this.window = new UnorderedInFlightWindow(deps.tracker.progress.cursor, messageRange);
  }

  get hasBacklog(): boolean {
    return this.window.lastRead < this.#deps.head() || this.window.toResend !== undefined;
  }

  async read(after: Seq, resendRangeEnd: Seq | null): Promise<NextUnorderedRequest<Seq>> {
    const { requests, head, lowerHeadAfterEmptyRead, reloadHook } = this.#deps;
    const headBefore = head();
    const bounds = resendRangeEnd === null ? this.#bounds() : { maxMessages: UNLIMITED, resendRangeEnd };
    const next = await requests.next(after, bounds);
    const isEmpty = next.request === null && next.skippedTo === after;
    // A notification announced a seq that the query does not see yet. A later notification or the sweep wakes the lane
    // again.
    if (isEmpty && resendRangeEnd === null) lowerHeadAfterEmptyRead(after, headBefore);
    else if (next.isNextMessageRemoved === true) reloadHook();
    return next;
  }

  rangeOf({ first, last }: DeliveryRequest): RequestRange<Seq> {
    return { first, last };
  }

  /**
   * A batch that failed while the hook had `order: strict` is sent again unchanged. After a refusal (400, 413 or 422)
   * its messages are sent one by one.
   */
  #bounds(): RequestRangeBounds {
    const { maxMessagesPerRequest, tracker, slowStart } = this.#deps;
    const { batchLastSeq, unbatchedUntil } = tracker.progress;
    const { lastRead } = this.window;
    if (batchLastSeq !== null && lastRead < batchLastSeq)
      return { maxMessages: UNLIMITED, resendRangeEnd: batchLastSeq };
    const isSingle = unbatchedUntil !== null && lastRead < unbatchedUntil;
    return {
      maxMessages: isSingle ? 1 : Math.min(maxMessagesPerRequest, slowStart.maxBatchOrInFlight),
      resendRangeEnd: null,
    };
  }
}

/**
 * The events of a lane with `order: none`. They do not wait for messages: an event can arrive before the message that
 * it changed.
 */
export class UnorderedEvents implements UnorderedSource<Rev> {
  readonly window: UnorderedInFlightWindow<Rev>;
  readonly #deps: StrategyDeps;
  readonly #events: EventRequestBuilder;

  constructor(deps: StrategyDeps, events: EventRequestBuilder, { eventCursor }: LanePosition) {
    this.#deps = deps;
    this.#events = events;
    this.window = new UnorderedInFlightWindow(eventCursor!, eventRange);
  }

  get hasBacklog(): boolean {
    return this.#events.mayHaveEventsAfter(this.window.lastRead) || this.window.toResend !== undefined;
  }

  read(after: Rev, resendRangeEnd: Rev | null): Promise<NextUnorderedRequest<Rev>> {
    const { maxMessagesPerRequest, tracker, slowStart } = this.#deps;
    const { batchLastRev, unbatchedUntilRev } = tracker.progress;
    const { lastRead } = this.window;
    const isFailedBatch = batchLastRev !== null && lastRead < batchLastRev;
    const isSingle = unbatchedUntilRev !== null && lastRead < unbatchedUntilRev;
    const last = resendRangeEnd ?? (isFailedBatch ? batchLastRev : null);
    const maxEvents =
      last !== null ? UNLIMITED : isSingle ? 1 : Math.min(maxMessagesPerRequest, slowStart.maxBatchOrInFlight);
    return this.#events.next(after, { maxEvents, resendRangeEnd: last, maxAfterSeq: UNLIMITED as Seq });
  }

  rangeOf({ rev, lastRev }: DeliveryRequest): RequestRange<Rev> {
    return { first: rev as Rev, last: lastRev! };
  }
}
