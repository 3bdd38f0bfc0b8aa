import type { Seq } from '../model/ids.ts';
import type { Pool } from '../storage/pool.ts';
import { dueRetries, hastenRetries, retriesBehind, type RetryRow } from '../storage/retries.ts';
import type { LaneRow } from '../storage/lanes.ts';
import { HELD_MS } from './open-ranges.ts';
import { longestDelayMs, NextAttempt, timeIn, type RetrySchedule } from './retry.ts';

/** Read with one query. */
const PAGE = 16;

/**
 * A hook's requests that are repeated apart from the log's order: failing ones of a hook that asks for none, and messages
 * that were asked for again. They are rows of the database; here are the few that are due, and when the next will be.
 */
export class Apart {
  readonly #pool: Pool;
  readonly #row: LaneRow;
  readonly #schedule: RetrySchedule;
  #count: number;
  #next: NextAttempt | null = null;
  #page: RetryRow[] = [];
  /** Taken from the page and not over yet. */
  #taken = 0;
  #hastenFromMs = 0;
  /** Became rows, or due, or something else, since the last read began: what it answers may not know of them. */
  #sinceRead = { count: 0, next: null as Date | null, replaced: new Set<Seq>() };

  constructor(pool: Pool, row: LaneRow, schedule: RetrySchedule) {
    this.#pool = pool;
    this.#row = row;
    this.#schedule = schedule;
    this.#count = row.retries;
    this.#wait(row.retryAt);
  }

  /** Rows, those in flight too. */
  get count(): number {
    return this.#count;
  }

  /** Whether there is anything to do, now or later. By when, not by how many: what is counted may have been counted twice. */
  get hasWork(): boolean {
    return this.#taken > 0 || this.#page.length > 0 || this.#next !== null;
  }

  /** When the next of them is due; null when there is none that waits. */
  get nextAt(): Date | null {
    return this.#next?.at ?? null;
  }

  /** How long until one may be taken, in ms; null when none is waiting, or those taken have to be over first. */
  get waitMs(): number | null {
    if (this.#page.length > 0) return 0;
    if (this.#taken > 0) return null;
    return this.#next?.waitMs() ?? null;
  }

  /**
   * Takes one that is due, to be given back with `done`. `drain` has to write what became of the ones before: what is
   * read next must not be what has just been sent. What `isHeld` is looked at again later. Null: none is due, or the hook
   * was changed by somebody.
   */
  async take(drain: () => Promise<boolean>, isHeld: (seq: Seq) => boolean = () => false): Promise<RetryRow | null> {
    if (this.#page.length === 0) {
      if (this.#taken > 0) return null;
      this.#sinceRead = { count: 0, next: null, replaced: new Set() };
      if (!(await drain())) return null;
      await this.#read();
    }
    for (let row = this.#page.shift(); row !== undefined; row = this.#page.shift()) {
      if (isHeld(row.seq)) {
        this.#expect(timeIn(HELD_MS));
        continue;
      }
      this.#taken += 1;
      return row;
    }
    return null;
  }

  async #read(): Promise<void> {
    // Where the clock was set back meanwhile, the time that was waited for is now.
    const isTime = this.#next !== null && this.#next.waitMs() === 0;
    const nowMs = Math.max(Date.now(), isTime ? this.#next!.at.getTime() : 0);
    const bounds = { nowMs, longestMs: longestDelayMs(this.#schedule), limit: PAGE };
    const { due, count, nextAt } = await this.#pool.run((sql) => dueRetries(sql, this.#row.id, bounds));
    const { count: added, next, replaced } = this.#sinceRead;
    this.#page = due.filter(({ seq }) => !replaced.has(seq));
    // Counted twice where the answer does know of them: the next read, which they make, puts that right.
    this.#count = count + added;
    // More of them than one page: those are due as well.
    this.#wait(due.length === PAGE && count > PAGE ? new Date() : nextAt);
    if (next !== null) this.#expect(next);
  }

  /** One that was taken is over, or waits until `nextAt`. `undecided`: nothing became of it, it is due as before. */
  done(outcome: 'over' | 'undecided' | Date): void {
    this.#taken -= 1;
    if (outcome === 'over') this.#count -= 1;
    else this.#expect(outcome === 'undecided' ? new Date() : outcome);
  }

  /** So many more are written, the first of them due then. */
  add(count: number, nextAt: Date): void {
    this.#count += count;
    this.#sinceRead.count += count;
    this.#expect(nextAt);
  }

  /** The row that begins here is another by now, or gone: what was read of it is not to be taken. */
  replaced(seq: Seq): void {
    this.#count -= 1;
    this.#page = this.#page.filter((row) => row.seq !== seq);
    this.#sinceRead.replaced.add(seq);
  }

  /** Rows that begin behind this seq, due or not. */
  behind(seq: Seq): Promise<readonly RetryRow[]> {
    return this.#pool.run((sql) => retriesBehind(sql, this.#row.id, seq));
  }

  /** So many that were not taken are over. */
  dropped(count: number): void {
    this.#count -= count;
  }

  /**
   * Makes all of them due: the target takes deliveries again. Once in the longest wait at most: a few that fail by
   * themselves look like an outage too, which each success would end.
   */
  async hasten(): Promise<void> {
    if (this.#count === 0 || performance.now() < this.#hastenFromMs) return;
    const now = new Date();
    await this.#pool.run((sql) => hastenRetries(sql, this.#row.id, now));
    this.#hastenFromMs = performance.now() + longestDelayMs(this.#schedule);
    this.#expect(now);
  }

  #expect(at: Date): void {
    const { next } = this.#sinceRead;
    if (next === null || at < next) this.#sinceRead.next = at;
    if (this.#next === null || at < this.#next.at) this.#wait(at);
  }

  #wait(at: Date | null): void {
    this.#next = at === null ? null : new NextAttempt(at, this.#schedule);
  }
}
