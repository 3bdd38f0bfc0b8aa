import type { Rev, Seq } from '../model/ids.ts';
import type { RetryRange, RetryRangeUpdate } from '../storage/hooks/settlement.ts';

/**
 * Requests that may end while an earlier one is in flight. After a kill of the process, at most so many are sent again.
 */
export const MAX_REQUESTS_COMPLETED_AHEAD = 16;
/** A spilled request's retry row is due after this time: by then the request or its process has ended. */
export const SPILLED_DELAY_MS = 30_000;

/** A number in the log: the seq of a message or the rev of an event. */
type LogNumber = Seq | Rev;

/** The messages or events of one request. */
export interface RequestRange<Num extends LogNumber> {
  readonly first: Num;
  readonly last: Num;
}

/** A request in flight, without an outcome so far. */
export interface InFlightRange<Num extends LogNumber> extends RequestRange<Num> {
  /** True: the request has left; stopping the lane now does not keep it from its receiver. */
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
  /** The first numbers of completed requests above the cursor. */
  #firstCompletedAhead: Num[] = [];

  /** `retryRangeOf` returns the range that identifies a request's retry row. */
  constructor(cursor: Num, retryRangeOf: (range: RequestRange<Num>) => RetryRange) {
    this.#lastRead = cursor;
    this.#retryRangeOf = retryRangeOf;
  }

  /** Everything up to this number was read; new requests begin after it. */
  get lastRead(): Num {
    return this.#lastRead;
  }

  /** Requests in flight. */
  get inFlightRequestCount(): number {
    return this.#inFlight.size;
  }

  /** The range to send again next, if any. */
  get toResend(): RequestRange<Num> | undefined {
    return this.#toResend[0];
  }

  /** Everything up to here is completed or in a retry row. */
  get cursor(): Num {
    return Math.min(this.#lastRead, ...this.#incompleteRangesHoldingCursor.map(({ first }) => first - 1)) as Num;
  }

  /**
   * Registers a request in flight. `toResend`: the range that it sends again; undefined: it sends newly read numbers.
   */
  begin({ first, last }: RequestRange<Num>, toResend: RequestRange<Num> | undefined): InFlightRange<Num> {
    if (toResend === undefined) this.#lastRead = last;
    else this.#remove(toResend);
    const range = { first, last, hasSendingBegun: false, hasRetryRow: false };
    this.#inFlight.add(range);
    return range;
  }

  /** Skips the numbers up to here, in `toResend` or, when that is undefined, in what comes after `lastRead`. */
  skip(skippedTo: Num, toResend: RequestRange<Num> | undefined): void {
    if (toResend === undefined) this.#lastRead = skippedTo;
    else {
      this.#remove(toResend);
      if (skippedTo < toResend.last) this.#toResend.unshift({ first: (skippedTo + 1) as Num, last: toResend.last });
    }
  }

  /** The request has an outcome: the cursor may pass it. */
  complete(range: InFlightRange<Num>): void {
    this.#inFlight.delete(range);
    this.#firstCompletedAhead.push(range.first);
  }

  /** The request's outcome is unknown: it is sent again. If it has a retry row, that row brings the next attempt. */
  requeueUnknownOutcome(range: InFlightRange<Num>): void {
    this.#inFlight.delete(range);
    if (!range.hasRetryRow) this.#toResend.push({ first: range.first, last: range.last });
  }

  /**
   * True when no further request may begin: too many have overtaken one that has not been written to its socket yet.
   */
  get isBlockedByRangeNotSent(): boolean {
    return (
      this.#firstCompletedAhead.length > MAX_REQUESTS_COMPLETED_AHEAD && this.#cursorBlocker?.hasSendingBegun === false
    );
  }

  /** True when the retry row that begins here belongs to a request in flight. */
  isSpilledInFlight(number: Num): boolean {
    for (const { first, hasRetryRow } of this.#inFlight) if (hasRetryRow && first === number) return true;
    return false;
  }

  /**
   * The retry rows for requests that too many others have overtaken: the oldest in flight, so that the cursor may pass
   * them. The caller writes the rows with the settlement that moves the cursor. A request that has not been written to
   * its socket gets no row: if it were stopped then, it would arrive after the others.
   */
  spillToRetries(): readonly RetryRangeUpdate[] {
    const rows: RetryRangeUpdate[] = [];
    for (;;) {
      const { cursor } = this;
      this.#firstCompletedAhead = this.#firstCompletedAhead.filter((number) => number > cursor);
      if (this.#firstCompletedAhead.length <= MAX_REQUESTS_COMPLETED_AHEAD) return rows;
      const oldest = this.#cursorBlocker;
      // A range that must be sent again is sent next, so it needs no retry row.
      if (oldest === undefined || !oldest.hasSendingBegun) return rows;
      oldest.hasRetryRow = true;
      const nextAt = new Date(Date.now() + SPILLED_DELAY_MS);
      rows.push({ ...this.#retryRangeOf(oldest), attempts: 0, nextAt });
    }
  }

  /** The request in flight that holds the cursor, if one does. */
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
