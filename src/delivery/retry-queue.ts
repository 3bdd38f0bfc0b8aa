import type { Pool } from '../storage/db/pool.ts';
import { readDueRetries, retryAllNow, retriesAfter, type RetryRangeWithAttempts } from '../storage/hooks/retries.ts';
import type { LaneRow } from '../storage/hooks/lanes.ts';
import type { LaneCursorAndFailures, RetryKey } from '../storage/hooks/settlement.ts';
import { SPILLED_DELAY_MS } from './unordered-in-flight-window.ts';
import { longestDelayMs, type RetryPolicy } from '../model/retry-policy.ts';
import { dueIn, ClockSafeNextAttempt } from './next-attempt.ts';

/** Rows that one query reads. */
const RETRIES_PER_QUERY = 16;
/** A wall clock that falls behind by more than this was set back: NTP slews it by less than a millisecond a second. */
const CLOCK_TOLERANCE_MS = 1_000;

/**
 * A hook's retry rows: failed requests of a hook without order, and messages whose redelivery was requested. The rows
 * are in the database; this queue holds the few that are due, and when the next one will be.
 */
export class RetryQueue {
  readonly #pool: Pool;
  readonly #row: LaneRow;
  readonly #retryPolicy: RetryPolicy;
  #rowCount: number;
  #nextDueAt: ClockSafeNextAttempt | null = null;
  #dueRows: RetryRangeWithAttempts[] = [];
  /** Rows that were taken and are not done yet. */
  #takenNotDoneCount = 0;
  #retryAllNotBeforeMs = 0;
  /** The wall clock's lead over the monotonic clock at the last check. */
  #clockOffsetMs = Date.now() - performance.now();
  /** Changes of rows since the last read began: the read's result may not include them. */
  #changesSinceRead = { count: 0, nextDueAt: null as Date | null, replaced: new Set<string>() };

  constructor(pool: Pool, row: LaneRow, retryPolicy: RetryPolicy) {
    this.#pool = pool;
    this.#row = row;
    this.#retryPolicy = retryPolicy;
    this.#rowCount = row.retries;
    this.#setNextDue(row.earliestRetryAt);
  }

  /** Number of rows, including those in flight. */
  get rowCount(): number {
    return this.#rowCount;
  }

  /**
   * Whether there is anything to do, now or later. This check does not use `rowCount`, which may include a row twice.
   */
  get hasPendingWork(): boolean {
    return this.#takenNotDoneCount > 0 || this.#dueRows.length > 0 || this.#nextDueAt !== null;
  }

  /** When the first of the rows that are not due yet becomes due; null if no such row is known. */
  get nextWaitingRetryAt(): Date | null {
    return this.#nextDueAt?.at ?? null;
  }

  /**
   * Milliseconds until a row may be taken. Null when no row waits, or when the rows that were taken must be done first.
   */
  get waitMs(): number | null {
    if (this.#dueRows.length > 0) return 0;
    if (this.#takenNotDoneCount > 0) return null;
    return this.#nextDueAt?.waitMs() ?? null;
  }

  /**
   * Takes a row that is due; the caller gives it back with `done`. `flush` writes the outcomes of earlier rows, so that
   * the next read does not return a request that was just sent. A row for which `isInFlight` is true is checked again
   * later. Null: no row is due, or somebody changed the hook.
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
    // If the clock was set back while the queue waited, the due time of the awaited row counts as now.
    const isDue = this.#nextDueAt !== null && this.#nextDueAt.waitMs() === 0;
    const nowMs = Math.max(Date.now(), isDue ? this.#nextDueAt!.at.getTime() : 0);
    const bounds = { nowMs, maxPlausibleDelayMs: longestDelayMs(this.#retryPolicy), limit: RETRIES_PER_QUERY };
    const { due, count, nextAt } = await this.#pool.run((sql) => readDueRetries(sql, this.#row.id, bounds));
    const { count: addedMeanwhile, nextDueAt, replaced } = this.#changesSinceRead;
    this.#dueRows = due.filter((row) => !replaced.has(keyOf(row)));
    // Added rows that the result already includes are counted twice, until the read that they cause corrects the count.
    this.#rowCount = count + addedMeanwhile;
    // There is more than one page: the remaining rows may be due as well.
    this.#setNextDue(due.length === RETRIES_PER_QUERY && count > RETRIES_PER_QUERY ? new Date() : nextAt);
    if (nextDueAt !== null) this.#noteDue(nextDueAt);
  }

  /**
   * Ends a row that was taken, or lets it wait until `nextAt`. `unknown`: the attempt has no outcome, and the row stays
   * due.
   */
  done(outcome: 'finished' | 'unknown' | Date): void {
    this.#takenNotDoneCount -= 1;
    if (outcome === 'finished') this.#rowCount -= 1;
    else this.#noteDue(outcome === 'unknown' ? new Date() : outcome);
  }

  /** Adds `count` new rows, the first of them due at `nextAt`. */
  add(count: number, nextAt: Date): void {
    this.#rowCount += count;
    this.#changesSinceRead.count += count;
    this.#noteDue(nextAt);
  }

  /** The row with this key was changed or deleted: a copy that was read earlier must not be taken. */
  replaced(key: RetryKey): void {
    this.#rowCount -= 1;
    this.#dueRows = this.#dueRows.filter((row) => keyOf(row) !== keyOf(key));
    this.#changesSinceRead.replaced.add(keyOf(key));
  }

  /** Rows that begin after these cursors, due or not. */
  startingAfter(
    cursors: Pick<LaneCursorAndFailures, 'cursor' | 'eventCursor'>,
  ): Promise<readonly RetryRangeWithAttempts[]> {
    return this.#pool.run((sql) => retriesAfter(sql, this.#row.id, cursors));
  }

  /** Subtracts rows that ended without being taken. */
  discarded(count: number): void {
    this.#rowCount -= count;
  }

  /**
   * Makes all rows due, since the target takes deliveries again. It does so at most once per longest retry delay. A few
   * rows that fail for their own content also look like an outage, and each success would end it.
   */
  async retryAllNowUnlessRecent(): Promise<void> {
    if (this.#rowCount === 0 || performance.now() < this.#retryAllNotBeforeMs) return;
    const now = await this.#makeAllDue();
    this.#retryAllNotBeforeMs = performance.now() + longestDelayMs(this.#retryPolicy);
    this.#noteDue(now);
  }

  async #makeAllDue(): Promise<Date> {
    const now = new Date();
    await this.#pool.run((sql) => retryAllNow(sql, this.#row.id, now));
    return now;
  }

  /**
   * Whether the wall clock was set back since the last call. A row's due time is wall-clock time: an older row would
   * wait longer by that difference, up to the longest delay of the retry policy.
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
