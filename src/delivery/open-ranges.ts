import type { Seq } from '../model/ids.ts';
import type { RetryRecord } from '../storage/settlement.ts';

/** Requests that may be over while an earlier one is on its way: a kill repeats as many. */
export const MAX_OVERTAKING = 16;
/** A request that became a row while it is on its way is looked for there no earlier: by then it is over, or its process. */
export const HELD_MS = 30_000;

/** Messages of one request. */
export interface Range {
  readonly first: Seq;
  readonly last: Seq;
}

/** A request without a verdict. */
export interface OpenRange extends Range {
  /** It has left: who stops the lane now does not keep it from its receiver. */
  isWritten: boolean;
  /** It is in `delivery_retry` as well, so that the cursor may pass it. */
  hasRow: boolean;
}

/**
 * What a lane that keeps no order has begun and not ended: what is on its way, and what has to be sent again because
 * nobody knows what became of it. The cursor stays below all of it, but for what is a row.
 */
export class OpenRanges {
  #readTo: Seq;
  readonly #onItsWay = new Set<OpenRange>();
  readonly #again: Range[] = [];
  /** Where requests began that are over, above the cursor. */
  #overtaking: Seq[] = [];

  constructor(cursor: Seq) {
    this.#readTo = cursor;
  }

  /** Up to here everything was read; what comes next is behind it. */
  get readTo(): Seq {
    return this.#readTo;
  }

  /** Requests on their way. */
  get count(): number {
    return this.#onItsWay.size;
  }

  /** What is to be sent again next, if anything. */
  get again(): Range | undefined {
    return this.#again[0];
  }

  /** Everything up to here is over, or a row. */
  get cursor(): Seq {
    return Math.min(this.#readTo, ...this.#blocking.map(({ first }) => first - 1)) as Seq;
  }

  /** A request goes out. `again`: what is sent again with it; undefined: it is what lies ahead. */
  begin({ first, last }: Range, again: Range | undefined): OpenRange {
    if (again === undefined) this.#readTo = last;
    else this.#remove(again);
    const range = { first, last, isWritten: false, hasRow: false };
    this.#onItsWay.add(range);
    return range;
  }

  /** Nothing up to here is to be sent: of what was to be sent again, or of what lies ahead. */
  leaveOut(passed: Seq, again: Range | undefined): void {
    if (again === undefined) this.#readTo = passed;
    else {
      this.#remove(again);
      if (passed < again.last) this.#again.unshift({ first: (passed + 1) as Seq, last: again.last });
    }
  }

  /** It is over: the cursor may pass it. */
  decided(range: OpenRange): void {
    this.#onItsWay.delete(range);
    this.#overtaking.push(range.first);
  }

  /** Nobody knows what became of it. Where it is a row, that is due by itself. */
  undecided(range: OpenRange): void {
    this.#onItsWay.delete(range);
    if (!range.hasRow) this.#again.push({ first: range.first, last: range.last });
  }

  /** Whether nothing further may begin: too much has overtaken a request that is not written yet. */
  get isCrowded(): boolean {
    return this.#overtaking.length > MAX_OVERTAKING && this.#first?.isWritten === false;
  }

  /** Whether the row that begins here stands for a request that is on its way. */
  holds(seq: Seq): boolean {
    for (const { first, hasRow } of this.#onItsWay) if (hasRow && first === seq) return true;
    return false;
  }

  /**
   * The rows for what is overtaken by too many: the oldest on their way, so that the cursor may pass them. To be written
   * with the settlement that does. What is not written waits for it: stopped then, it would come behind the others.
   */
  passOver(): readonly RetryRecord[] {
    const rows: RetryRecord[] = [];
    for (;;) {
      const { cursor } = this;
      this.#overtaking = this.#overtaking.filter((seq) => seq > cursor);
      if (this.#overtaking.length <= MAX_OVERTAKING) return rows;
      const held = this.#first;
      // What is to be sent again comes next.
      if (held === undefined || !held.isWritten) return rows;
      held.hasRow = true;
      rows.push({ seq: held.first, lastSeq: held.last, attempts: 0, nextAt: new Date(Date.now() + HELD_MS) });
    }
  }

  /** What keeps the cursor, where that is on its way. */
  get #first(): OpenRange | undefined {
    const { cursor } = this;
    for (const range of this.#onItsWay) if (!range.hasRow && range.first === cursor + 1) return range;
    return undefined;
  }

  #remove(again: Range): void {
    this.#again.splice(this.#again.indexOf(again), 1);
  }

  get #blocking(): readonly Range[] {
    return [...[...this.#onItsWay].filter(({ hasRow }) => !hasRow), ...this.#again];
  }
}
