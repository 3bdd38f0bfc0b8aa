import type { Pool } from '../storage/db/pool.ts';
import {
  readDueRetries,
  makeAllRetriesDue,
  retriesAfter,
  type RetryRangeWithAttempts,
} from '../storage/hooks/retries.ts';
import type { LaneRow } from '../storage/hooks/lanes.ts';
import type { LaneCursorAndFailures, RetryKey } from '../storage/hooks/settlement.ts';
import { SPILLED_DELAY_MS } from './unordered-in-flight-window.ts';
import { longestDelayMs, type RetryPolicy } from '../model/retry-policy.ts';
import { dueIn, ClockSafeNextAttempt } from './next-attempt.ts';

/** The most retry rows that one query reads. */
const RETRIES_PER_QUERY = 16;
/**
 * If the wall clock falls behind the monotonic clock by more than this, somebody set the wall clock back: NTP slews it
 * by less than a millisecond a second.
 */
const CLOCK_TOLERANCE_MS = 1_000;

/**
 * A hook's retry rows: failed requests of a hook with `order: none`, and messages whose redelivery was requested. All
 * rows are in the database. This queue holds only the few that are due, and the time when the next one is due.
 */
export class RetryQueue {
  readonly #pool: Pool;
  readonly #row: LaneRow;
  readonly #retryPolicy: RetryPolicy;
  #rowCount: number;
  #nextDueAt: ClockSafeNextAttempt | null = null;
  #dueRows: RetryRangeWithAttempts[] = [];
  /** Number of rows that `take` has returned, and that the lane has not given back with `done`. */
  #takenNotDoneCount = 0;
  #retryAllNotBeforeMs = 0;
  /** The wall clock minus the monotonic clock, in milliseconds, at the last check. */
  #clockOffsetMs = Date.now() - performance.now();
  /** Changes of rows since the last read of the table began. The result of that read may lack them. */
  #changesSinceRead = { count: 0, nextDueAt: null as Date | null, replaced: new Set<string>() };

  constructor(pool: Pool, row: LaneRow, retryPolicy: RetryPolicy) {
    this.#pool = pool;
    this.#row = row;
    this.#retryPolicy = retryPolicy;
    this.#rowCount = row.retries;
    this.#setNextDue(row.earliestRetryAt);
  }

  /** Number of the hook's retry rows, including those that `take` has returned. */
  get rowCount(): number {
    return this.#rowCount;
  }

  /** True when a row is due, taken, or due later. Does not use `rowCount`, which may count a row twice. */
  get hasPendingWork(): boolean {
    return this.#takenNotDoneCount > 0 || this.#dueRows.length > 0 || this.#nextDueAt !== null;
  }

  /** The time when the next row becomes due, apart from those that were read as due; null if no such row is known. */
  get nextWaitingRetryAt(): Date | null {
    return this.#nextDueAt?.at ?? null;
  }

  /**
   * Milliseconds until `take` can return a row. Null when no row waits, or when the rows that were taken must be done
   * first.
   */
  get waitMs(): number | null {
    if (this.#dueRows.length > 0) return 0;
    if (this.#takenNotDoneCount > 0) return null;
    return this.#nextDueAt?.waitMs() ?? null;
  }

  /**
   * Takes a row that is due; the caller gives it back with `done`. Null: no row is due, or somebody changed the hook.
   * `flush` writes the outcomes of earlier rows, so that the next read of the table does not return them again. If
   * `isInFlight` is true for a row, the queue checks that row again later.
   */
  async take(
    flush: () => Promise<boolean>,
    isInFlight: (row: RetryKey) => boolean = () => false,
  ): Promise<RetryRangeWithAttempts | null> {
    if (this.#dueRows.length === 0) {
      if (this.#takenNotDoneCount > 0) return null;
      this.#changesSinceRead = { count: 0, nextDueAt: null, replaced: new Set() };
      if (!(await flush())) return null;
      await this.#read();
    }
    for (let row = this.#dueRows.shift(); row !== undefined; row = this.#dueRows.shift()) {
      if (isInFlight(row)) {
        this.#noteDue(dueIn(SPILLED_DELAY_MS));
        continue;
      }
      this.#takenNotDoneCount += 1;
      return row;
    }
    return null;
  }

  async #read(): Promise<void> {
    if (this.#isClockSetBack()) await this.#makeAllDue();
    // If the wall clock was set back while the queue waited for a row, the due time of that row serves as the present
    // time.
    const isDue = this.#nextDueAt !== null && this.#nextDueAt.waitMs() === 0;
    const nowMs = Math.max(Date.now(), isDue ? this.#nextDueAt!.at.getTime() : 0);
    const bounds = { nowMs, maxPlausibleDelayMs: longestDelayMs(this.#retryPolicy), limit: RETRIES_PER_QUERY };
    const { due, count, nextAt } = await this.#pool.run((sql) => readDueRetries(sql, this.#row.id, bounds));
    const { count: addedMeanwhile, nextDueAt, replaced } = this.#changesSinceRead;
    this.#dueRows = due.filter((row) => !replaced.has(keyOf(row)));
    // A row that was added during the read may be in the result too. It then counts twice, until a later read corrects
    // the count.
    this.#rowCount = count + addedMeanwhile;
    // If the query returned a full page and more rows exist, those may be due as well: they are read next.
    this.#setNextDue(due.length === RETRIES_PER_QUERY && count > RETRIES_PER_QUERY ? new Date() : nextAt);
    if (nextDueAt !== null) this.#noteDue(nextDueAt);
  }

  /**
   * Gives back a row that `take` returned. `finished`: the row is deleted. `unknown`: the attempt has no outcome, and
   * the row stays due. A `Date`: the row is due at that time.
   */
  done(outcome: 'finished' | 'unknown' | Date): void {
    this.#takenNotDoneCount -= 1;
    if (outcome === 'finished') this.#rowCount -= 1;
    else this.#noteDue(outcome === 'unknown' ? new Date() : outcome);
  }

  /** Counts `count` rows that the caller writes to the table; the first of them is due at `nextAt`. */
  noteAddedRows(count: number, nextAt: Date): void {
    this.#rowCount += count;
    this.#changesSinceRead.count += count;
    this.#noteDue(nextAt);
  }

  /**
   * Drops the row with this key, which was changed or deleted: `take` must not return the copy that was read earlier.
   */
  dropReplacedRow(key: RetryKey): void {
    this.#rowCount -= 1;
    this.#dueRows = this.#dueRows.filter((row) => keyOf(row) !== keyOf(key));
    this.#changesSinceRead.replaced.add(keyOf(key));
  }

  /** Reads the rows that begin after these cursors, whether due or not. */
  readRowsStartingAfter(
    cursors: Pick<LaneCursorAndFailures, 'cursor' | 'eventCursor'>,
  ): Promise<readonly RetryRangeWithAttempts[]> {
    return this.#pool.run((sql) => retriesAfter(sql, this.#row.id, cursors));
  }

  /** Subtracts `count` from the number of rows: the caller deleted rows that `take` had not returned. */
  noteDiscardedRows(count: number): void {
    this.#rowCount -= count;
  }

  /**
   * Makes all rows due, since the target accepts deliveries again. Does so at most once in the longest delay of the
   * retry policy. Otherwise a few messages that the target refuses would look like an outage, and each success like its
   * end.
   */
  async retryAllNowUnlessRecent(): Promise<void> {
    if (this.#rowCount === 0 || performance.now() < this.#retryAllNotBeforeMs) return;
    const now = await this.#makeAllDue();
    this.#retryAllNotBeforeMs = performance.now() + longestDelayMs(this.#retryPolicy);
    this.#noteDue(now);
  }

  async #makeAllDue(): Promise<Date> {
    const now = new Date();
    await this.#pool.run((sql) => makeAllRetriesDue(sql, this.#row.id, now));
    return now;
  }

  /**
   * True when the wall clock was set back since the last call. The due times of rows are wall-clock times: rows that
   * were written before would wait longer by the difference.
   */
  #isClockSetBack(): boolean {
    const offsetMs = Date.now() - performance.now();
    const isSetBack = offsetMs < this.#clockOffsetMs - CLOCK_TOLERANCE_MS;
    this.#clockOffsetMs = offsetMs;
    return isSetBack;
  }

  #noteDue(at: Date): void {
    const { nextDueAt } = this.#changesSinceRead;
    if (nextDueAt === null || at < nextDueAt) this.#changesSinceRead.nextDueAt = at;
    if (this.#nextDueAt === null || at < this.#nextDueAt.at) this.#setNextDue(at);
  }

  #setNextDue(at: Date | null): void {
    this.#nextDueAt = at === null ? null : new ClockSafeNextAttempt(at, this.#retryPolicy);
  }
}

function keyOf({ seq, rev }: RetryKey): string {
  return `${seq}:${rev}`;
}
