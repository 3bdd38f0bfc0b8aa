import type { Seq } from '../model/ids.ts';
import type { RetryRecord } from '../storage/hooks/settlement.ts';

/** Requests that may be over while an earlier one is on its way: a kill repeats as many. */
export const MAX_REQUESTS_COMPLETED_AHEAD = 16;
/** A request that became a row while it is on its way is looked for there no earlier: by then it is over, or its process. */
export const SPILLED_DELAY_MS = 30_000;

/** Messages of one request. */
export interface SeqRange {
  readonly first: Seq;
  readonly last: Seq;
}

/** A request without a verdict. */
export interface InFlightRange extends SeqRange {
  /** It has left: who stops the lane now does not keep it from its receiver. */
  isWrittenToSocket: boolean;
  /** It is in `delivery_retry` as well, so that the cursor may pass it. */
  hasRetryRow: boolean;
}

/**
 * What a lane that keeps no order has begun and not ended: what is on its way, and what has to be sent again because
 * nobody knows what became of it. The cursor stays below all of it, but for what is a row.
 */
export class UnorderedInFlightWindow {
  #lastReadSeq: Seq;
  readonly #inFlight = new Set<InFlightRange>();
  readonly #toResend: SeqRange[] = [];
  /** Where requests began that are over, above the cursor. */
  #firstSeqsCompletedAhead: Seq[] = [];

  constructor(cursor: Seq) {
    this.#lastReadSeq = cursor;
  }

  /** Up to here everything was read; what comes next is behind it. */
  get lastReadSeq(): Seq {
    return this.#lastReadSeq;
  }

  /** Requests on their way. */
  get count(): number {
    return this.#inFlight.size;
  }

  /** What is to be sent again next, if anything. */
  get toResend(): SeqRange | undefined {
    return this.#toResend[0];
  }

  /** Everything up to here is over, or a row. */
  get cursor(): Seq {
    return Math.min(this.#lastReadSeq, ...this.#rangesHoldingCursor.map(({ first }) => first - 1)) as Seq;
  }

  /** A request goes out. `toResend`: what is sent again with it; undefined: it is what lies ahead. */
  begin({ first, last }: SeqRange, toResend: SeqRange | undefined): InFlightRange {
    if (toResend === undefined) this.#lastReadSeq = last;
    else this.#remove(toResend);
    const range = { first, last, isWrittenToSocket: false, hasRetryRow: false };
    this.#inFlight.add(range);
    return range;
  }

  /** Nothing up to here is to be sent: of what was to be sent again, or of what lies ahead. */
  skip(skippedTo: Seq, toResend: SeqRange | undefined): void {
    if (toResend === undefined) this.#lastReadSeq = skippedTo;
    else {
      this.#remove(toResend);
      if (skippedTo < toResend.last) this.#toResend.unshift({ first: (skippedTo + 1) as Seq, last: toResend.last });
    }
  }

  /** It is over: the cursor may pass it. */
  complete(range: InFlightRange): void {
    this.#inFlight.delete(range);
    this.#firstSeqsCompletedAhead.push(range.first);
  }

  /** Nobody knows what became of it. Where it is a row, that is due by itself. */
  requeueUnknownOutcome(range: InFlightRange): void {
    this.#inFlight.delete(range);
    if (!range.hasRetryRow) this.#toResend.push({ first: range.first, last: range.last });
  }

  /** Whether nothing further may begin: too much has overtaken a request that is not written yet. */
  get isBlockedByUnwritten(): boolean {
    return (
      this.#firstSeqsCompletedAhead.length > MAX_REQUESTS_COMPLETED_AHEAD &&
      this.#cursorBlocker?.isWrittenToSocket === false
    );
  }

  /** Whether the row that begins here stands for a request that is on its way. */
  isSpilledInFlight(seq: Seq): boolean {
    for (const { first, hasRetryRow } of this.#inFlight) if (hasRetryRow && first === seq) return true;
    return false;
  }

  /**
   * The rows for what is overtaken by too many: the oldest on their way, so that the cursor may pass them. To be written
   * with the settlement that does. What is not written waits for it: stopped then, it would come behind the others.
   */
  spillToRetries(): readonly RetryRecord[] {
    const rows: RetryRecord[] = [];
    for (;;) {
      const { cursor } = this;
      this.#firstSeqsCompletedAhead = this.#firstSeqsCompletedAhead.filter((seq) => seq > cursor);
      if (this.#firstSeqsCompletedAhead.length <= MAX_REQUESTS_COMPLETED_AHEAD) return rows;
      const oldest = this.#cursorBlocker;
      // What is to be sent again comes next.
      if (oldest === undefined || !oldest.isWrittenToSocket) return rows;
      oldest.hasRetryRow = true;
      rows.push({
        seq: oldest.first,
        lastSeq: oldest.last,
        attempts: 0,
        nextAt: new Date(Date.now() + SPILLED_DELAY_MS),
      });
    }
  }

  /** What keeps the cursor, where that is on its way. */
  get #cursorBlocker(): InFlightRange | undefined {
    const { cursor } = this;
    for (const range of this.#inFlight) if (!range.hasRetryRow && range.first === cursor + 1) return range;
    return undefined;
  }

  #remove(toResend: SeqRange): void {
    this.#toResend.splice(this.#toResend.indexOf(toResend), 1);
  }

  get #rangesHoldingCursor(): readonly SeqRange[] {
    return [...[...this.#inFlight].filter(({ hasRetryRow }) => !hasRetryRow), ...this.#toResend];
  }
}
