import type { Rev, Seq } from '../model/ids.ts';
import type { RetryRange, RetryRangeUpdate } from '../storage/hooks/settlement.ts';

/** Requests that may be over while an earlier one is on its way: a kill repeats as many. */
export const MAX_REQUESTS_COMPLETED_AHEAD = 16;
/** A request that became a row while it is on its way is looked for there no earlier: by then it is over, or its process. */
export const SPILLED_DELAY_MS = 30_000;

/** Numbers in the log: those of messages, or those of events. */
type LogNumber = Seq | Rev;

/** Messages or events of one request. */
export interface RequestRange<Num extends LogNumber> {
  readonly first: Num;
  readonly last: Num;
}

/** A request without a verdict. */
export interface InFlightRange<Num extends LogNumber> extends RequestRange<Num> {
  /** It has left: who stops the lane now does not keep it from its receiver. */
  hasSendingBegun: boolean;
  /** It is in `delivery_retry` as well, so that the cursor may pass it. */
  hasRetryRow: boolean;
}

/**
 * What a lane that keeps no order has begun and not ended: what is on its way, and what has to be sent again because
 * its outcome is unknown. The cursor stays below all of it, but for what is a row.
 */
export class UnorderedInFlightWindow<Num extends LogNumber> {
  #lastRead: Num;
  readonly #retryRangeOf: (range: RequestRange<Num>) => RetryRange;
  readonly #inFlight = new Set<InFlightRange<Num>>();
  readonly #toResend: RequestRange<Num>[] = [];
  /** Where requests began that are over, above the cursor. */
  #firstCompletedAhead: Num[] = [];

  /** `retryRangeOf`: the key of the row that stands for a request. */
  constructor(cursor: Num, retryRangeOf: (range: RequestRange<Num>) => RetryRange) {
    this.#lastRead = cursor;
    this.#retryRangeOf = retryRangeOf;
  }

  /** Up to here everything was read; what comes next is behind it. */
  get lastRead(): Num {
    return this.#lastRead;
  }

  /** Requests on their way. */
  get inFlightRequestCount(): number {
    return this.#inFlight.size;
  }

  /** What is to be sent again next, if anything. */
  get toResend(): RequestRange<Num> | undefined {
    return this.#toResend[0];
  }

  /** Everything up to here is over, or a row. */
  get cursor(): Num {
    return Math.min(this.#lastRead, ...this.#incompleteRangesHoldingCursor.map(({ first }) => first - 1)) as Num;
  }

  /** A request goes out. `toResend`: what is sent again with it; undefined: it is what lies ahead. */
  begin({ first, last }: RequestRange<Num>, toResend: RequestRange<Num> | undefined): InFlightRange<Num> {
    if (toResend === undefined) this.#lastRead = last;
    else this.#remove(toResend);
    const range = { first, last, hasSendingBegun: false, hasRetryRow: false };
    this.#inFlight.add(range);
    return range;
  }

  /** Nothing up to here is to be sent: of what was to be sent again, or of what lies ahead. */
  skip(skippedTo: Num, toResend: RequestRange<Num> | undefined): void {
    if (toResend === undefined) this.#lastRead = skippedTo;
    else {
      this.#remove(toResend);
      if (skippedTo < toResend.last) this.#toResend.unshift({ first: (skippedTo + 1) as Num, last: toResend.last });
    }
  }

  /** It is over: the cursor may pass it. */
  complete(range: InFlightRange<Num>): void {
    this.#inFlight.delete(range);
    this.#firstCompletedAhead.push(range.first);
  }

  /** Its outcome is unknown. Where it has a retry row, that row brings the next attempt. */
  requeueUnknownOutcome(range: InFlightRange<Num>): void {
    this.#inFlight.delete(range);
    if (!range.hasRetryRow) this.#toResend.push({ first: range.first, last: range.last });
  }

  /** Whether nothing further may begin: too much has overtaken a request that is not written yet. */
  get isBlockedByRangeNotSent(): boolean {
    return (
      this.#firstCompletedAhead.length > MAX_REQUESTS_COMPLETED_AHEAD && this.#cursorBlocker?.hasSendingBegun === false
    );
  }

  /** Whether the row that begins here stands for a request that is on its way. */
  isSpilledInFlight(number: Num): boolean {
    for (const { first, hasRetryRow } of this.#inFlight) if (hasRetryRow && first === number) return true;
    return false;
  }

  /**
   * The rows for what is overtaken by too many: the oldest on their way, so that the cursor may pass them. To be written
   * with the settlement that does. What is not written waits for it: stopped then, it would come behind the others.
   */
  spillToRetries(): readonly RetryRangeUpdate[] {
    const rows: RetryRangeUpdate[] = [];
    for (;;) {
      const { cursor } = this;
      this.#firstCompletedAhead = this.#firstCompletedAhead.filter((number) => number > cursor);
      if (this.#firstCompletedAhead.length <= MAX_REQUESTS_COMPLETED_AHEAD) return rows;
      const oldest = this.#cursorBlocker;
      // What is to be sent again comes next.
      if (oldest === undefined || !oldest.hasSendingBegun) return rows;
      oldest.hasRetryRow = true;
      const nextAt = new Date(Date.now() + SPILLED_DELAY_MS);
      rows.push({ ...this.#retryRangeOf(oldest), attempts: 0, nextAt });
    }
  }

  /** What keeps the cursor, where that is on its way. */
  get #cursorBlocker(): InFlightRange<Num> | undefined {
    const { cursor } = this;
    for (const range of this.#inFlight) if (!range.hasRetryRow && range.first === cursor + 1) return range;
    return undefined;
  }

  #remove(toResend: RequestRange<Num>): void {
    this.#toResend.splice(this.#toResend.indexOf(toResend), 1);
  }

  get #incompleteRangesHoldingCursor(): readonly RequestRange<Num>[] {
    return [...[...this.#inFlight].filter(({ hasRetryRow }) => !hasRetryRow), ...this.#toResend];
  }
}
