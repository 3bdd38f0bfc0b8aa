import type { Pool } from '../storage/db/pool.ts';
import { readDueRetries, retryAllNow, retriesAfter, type RetryRangeWithAttempts } from '../storage/hooks/retries.ts';
import type { LaneRow } from '../storage/hooks/lanes.ts';
import type { LaneCursorAndFailures, RetryKey } from '../storage/hooks/settlement.ts';
import { SPILLED_DELAY_MS } from './unordered-in-flight-window.ts';
import { longestDelayMs, type RetryPolicy } from '../model/retry-policy.ts';
import { dueIn, ClockSafeNextAttempt } from './next-attempt.ts';

/** Read with one query. */
const RETRIES_PER_QUERY = 16;
/** NTP slews the wall clock by less than a millisecond a second. */
const CLOCK_TOLERANCE_MS = 1_000;

/**
 * A hook's requests that are repeated apart from the log's order: failing ones of a hook that asks for none, and messages
 * that were asked for again. They are rows of the database; here are the few that are due, and when the next will be.
 */
export class RetryQueue {
  readonly #pool: Pool;
  readonly #row: LaneRow;
  readonly #retryPolicy: RetryPolicy;
  #rowCount: number;
  #nextDueAt: ClockSafeNextAttempt | null = null;
  #dueRows: RetryRangeWithAttempts[] = [];
  /** Taken from the page and not over yet. */
  #takenNotDoneCount = 0;
  #retryAllNotBeforeMs = 0;
  /** How far the wall clock was ahead of the monotonic one when that was looked at last. */
  #clockOffsetMs = Date.now() - performance.now();
  /** Became rows, or due, or something else, since the last read began: what it answers may not know of them. */
  #changesSinceRead = { count: 0, nextDueAt: null as Date | null, replaced: new Set<string>() };

  constructor(pool: Pool, row: LaneRow, retryPolicy: RetryPolicy) {
    this.#pool = pool;
    this.#row = row;
    this.#retryPolicy = retryPolicy;
    this.#rowCount = row.retries;
    this.#setNextDue(row.earliestRetryAt);
  }

  /** Rows, those in flight too. */
  get rowCount(): number {
    return this.#rowCount;
  }

  /** Whether there is anything to do, now or later. By when, not by how many: what is counted may have been counted twice. */
  get hasPendingWork(): boolean {
    return this.#takenNotDoneCount > 0 || this.#dueRows.length > 0 || this.#nextDueAt !== null;
  }

  /** When the next of them is due; null when there is none that waits. */
  get nextWaitingRetryAt(): Date | null {
    return this.#nextDueAt?.at ?? null;
  }

  /** How long until one may be taken, in ms; null when none is waiting, or those taken have to be over first. */
  get waitMs(): number | null {
    if (this.#dueRows.length > 0) return 0;
    if (this.#takenNotDoneCount > 0) return null;
    return this.#nextDueAt?.waitMs() ?? null;
  }

  /**
   * Takes one that is due, to be given back with `done`. `flush` has to write the outcomes of the ones before: what is
   * read next must not be what has just been sent. What `isInFlight` is looked at again later. Null: none is due, or the hook
   * was changed by somebody.
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
    // Where the clock was set back meanwhile, the time that was waited for is now.
    const isDue = this.#nextDueAt !== null && this.#nextDueAt.waitMs() === 0;
    const nowMs = Math.max(Date.now(), isDue ? this.#nextDueAt!.at.getTime() : 0);
    const bounds = { nowMs, maxPlausibleDelayMs: longestDelayMs(this.#retryPolicy), limit: RETRIES_PER_QUERY };
    const { due, count, nextAt } = await this.#pool.run((sql) => readDueRetries(sql, this.#row.id, bounds));
    const { count: addedMeanwhile, nextDueAt, replaced } = this.#changesSinceRead;
    this.#dueRows = due.filter((row) => !replaced.has(keyOf(row)));
    // Counted twice where the answer does know of them: the next read, which they make, puts that right.
    this.#rowCount = count + addedMeanwhile;
    // More of them than one page: those are due as well.
    this.#setNextDue(due.length === RETRIES_PER_QUERY && count > RETRIES_PER_QUERY ? new Date() : nextAt);
    if (nextDueAt !== null) this.#noteDue(nextDueAt);
  }

  /** One that was taken is over, or waits until `nextAt`. `unknown`: nothing became of it, it is due as before. */
  done(outcome: 'finished' | 'unknown' | Date): void {
    this.#takenNotDoneCount -= 1;
    if (outcome === 'finished') this.#rowCount -= 1;
    else this.#noteDue(outcome === 'unknown' ? new Date() : outcome);
  }

  /** So many more are written, the first of them due then. */
  add(count: number, nextAt: Date): void {
    this.#rowCount += count;
    this.#changesSinceRead.count += count;
    this.#noteDue(nextAt);
  }

  /** The row that begins here is another by now, or gone: what was read of it is not to be taken. */
  replaced(key: RetryKey): void {
    this.#rowCount -= 1;
    this.#dueRows = this.#dueRows.filter((row) => keyOf(row) !== keyOf(key));
    this.#changesSinceRead.replaced.add(keyOf(key));
  }

  /** Rows that begin behind these cursors, due or not. */
  startingAfter(
    cursors: Pick<LaneCursorAndFailures, 'cursor' | 'eventCursor'>,
  ): Promise<readonly RetryRangeWithAttempts[]> {
    return this.#pool.run((sql) => retriesAfter(sql, this.#row.id, cursors));
  }

  /** So many that were not taken are over. */
  discarded(count: number): void {
    this.#rowCount -= count;
  }

  /**
   * Makes all of them due: the target takes deliveries again. Once in the longest wait at most: a few that fail by
   * themselves look like an outage too, which each success would end.
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
   * Whether the wall clock was set back since the last call. Rows say by the wall clock when they are due: those that were
   * written before would wait longer by as much, up to the longest delay of the retry policy.
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
