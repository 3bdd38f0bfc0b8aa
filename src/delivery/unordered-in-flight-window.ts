import type { Rev, Seq } from '../model/ids.ts';
import type { RetryRange, RetryRangeUpdate } from '../storage/hooks/settlement.ts';

/**
 * The most completed requests after the cursor, which stays before a request in flight. If more complete, the request
 * in flight gets a retry row, and the cursor passes it. A kill of the process repeats the completed requests after the
 * cursor.
 */
export const MAX_REQUESTS_COMPLETED_AHEAD = 16;
/** The time after which the retry row of a request in flight is due: by then the request or its process has ended. */
export const SPILLED_DELAY_MS = 30_000;

/** A number in the log: the seq of a message or the rev of an event. */
type LogNumber = Seq | Rev;

/** The messages or events of one request. */
export interface RequestRange<Num extends LogNumber> {
  readonly first: Num;
  readonly last: Num;
}

/** The range of a request in flight, whose outcome is not known yet. */
export interface InFlightRange<Num extends LogNumber> extends RequestRange<Num> {
  /** True: the request was written to its socket, so that it may arrive even if the lane is stopped. */
  hasSendingBegun: boolean;
  /** True: the request is also a row of `delivery_retry`, so that the cursor may pass it. */
  hasRetryRow: boolean;
}

/**
 * The unfinished requests of a lane without order: those in flight, and those to send again because their outcome is
 * unknown. The cursor stays below all of them, except those with a retry row.
 */
export class UnorderedInFlightWindow<Num extends LogNumber> {
  #lastRead: Num;
  readonly #retryRangeOf: (range: RequestRange<Num>) => RetryRange;
  readonly #inFlight = new Set<InFlightRange<Num>>();
  readonly #toResend: RequestRange<Num>[] = [];
  /** The first number of each completed request that the cursor has not passed. */
  #firstNumbersCompletedAhead: Num[] = [];

  /** `retryRangeOf`: returns the range that identifies the retry row of a request. */
  constructor(cursor: Num, retryRangeOf: (range: RequestRange<Num>) => RetryRange) {
    this.#lastRead = cursor;
    this.#retryRangeOf = retryRangeOf;
  }

  /** The greatest seq or rev that was read. New requests begin after it. */
  get lastRead(): Num {
    return this.#lastRead;
  }

  get inFlightRequestCount(): number {
    return this.#inFlight.size;
  }

  /** The next range to send again, because its outcome is unknown; undefined if there is none. */
  get toResend(): RequestRange<Num> | undefined {
    return this.#toResend[0];
  }

  /** The seq or rev up to which everything is completed or in a retry row. */
  get cursor(): Num {
    return Math.min(this.#lastRead, ...this.#incompleteRangesHoldingCursor.map(({ first }) => first - 1)) as Num;
  }

  /**
   * Registers a request in flight. `toResend`: the range that this request sends again; undefined: the request is new.
   */
  begin({ first, last }: RequestRange<Num>, toResend: RequestRange<Num> | undefined): InFlightRange<Num> {
    if (toResend === undefined) this.#lastRead = last;
    else this.#remove(toResend);
    const range = { first, last, hasSendingBegun: false, hasRetryRow: false };
    this.#inFlight.add(range);
    return range;
  }

  /** Skips messages or events up to `skippedTo`: those of `toResend` or, if it is undefined, those after `lastRead`. */
  skip(skippedTo: Num, toResend: RequestRange<Num> | undefined): void {
    if (toResend === undefined) this.#lastRead = skippedTo;
    else {
      this.#remove(toResend);
      if (skippedTo < toResend.last) this.#toResend.unshift({ first: (skippedTo + 1) as Num, last: toResend.last });
    }
  }

  /** Records that the request has an outcome, so that the cursor may pass it. */
  complete(range: InFlightRange<Num>): void {
    this.#inFlight.delete(range);
    this.#firstNumbersCompletedAhead.push(range.first);
  }

  /**
   * Records that the outcome of the request is unknown. The request is sent again at once; if it has a retry row, when
   * that row is due.
   */
  requeueUnknownOutcome(range: InFlightRange<Num>): void {
    this.#inFlight.delete(range);
    if (!range.hasRetryRow) this.#toResend.push({ first: range.first, last: range.last });
  }

  /**
   * True when no further request may begin: too many have completed before an earlier one was written to its socket.
   */
  get isBlockedByRangeNotSent(): boolean {
    return (
      this.#firstNumbersCompletedAhead.length > MAX_REQUESTS_COMPLETED_AHEAD &&
      this.#cursorBlocker?.hasSendingBegun === false
    );
  }

  /** True when the retry row that begins at `number` belongs to a request in flight. */
  isSpilledInFlight(number: Num): boolean {
    for (const { first, hasRetryRow } of this.#inFlight) if (hasRetryRow && first === number) return true;
    return false;
  }

  /**
   * When too many requests have completed before the oldest one in flight, returns a retry row for the oldest. Then the
   * cursor may pass it. The caller writes the rows with the settlement that moves the cursor. A request that was not
   * yet written to its socket gets no row: if the lane were stopped, it would be sent only later, from its row.
   */
  spillToRetries(): readonly RetryRangeUpdate[] {
    const rows: RetryRangeUpdate[] = [];
    for (;;) {
      const { cursor } = this;
      this.#firstNumbersCompletedAhead = this.#firstNumbersCompletedAhead.filter((number) => number > cursor);
      if (this.#firstNumbersCompletedAhead.length <= MAX_REQUESTS_COMPLETED_AHEAD) return rows;
      const oldest = this.#cursorBlocker;
      // If a range to send again holds the cursor, `oldest` is undefined. That range is sent next, so it needs no retry
      // row.
      if (oldest === undefined || !oldest.hasSendingBegun) return rows;
      oldest.hasRetryRow = true;
      const nextAt = new Date(Date.now() + SPILLED_DELAY_MS);
      rows.push({ ...this.#retryRangeOf(oldest), attempts: 0, nextAt });
    }
  }

  /** The request in flight that keeps the cursor from advancing, if one does. */
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
