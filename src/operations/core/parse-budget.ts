import { setTimeout as wait } from 'node:timers/promises';
import { BoundedCache } from '../../model/bounded-cache.ts';
import type { SourceKey } from '../../model/source-key.ts';

/**
 * A source's parse time is summed over ten slots of the last second, and the slot that is being filled. So in no second
 * it exceeds the budget by more than the last piece of work.
 */
const WINDOW_SLOTS = 11;
const WINDOW_SLOT_MS = 100;
/**
 * One piece of work is charged at most this time. Input within its limits takes less than a fifth of it: if more was
 * measured, the operating system ran something else meanwhile.
 */
const MAX_CHARGE_MS = 50;
/** The most sources whose parse time is remembered. They take at most two MiB of memory. */
const MAX_TRACKED_SOURCES = 10_000;
/**
 * Parsing for all sources together may hold the event loop for this long without a break; then everything else has a
 * turn.
 */
const MAX_ALL_SOURCES_TURN_MS = 5;
/** At most this many pieces of work wait for a later turn of the event loop. */
const MAX_WAITING_PARSES = 1_000;

interface SourceUsage {
  readonly usedMsBySlot: Float64Array;
  /** The number of the newest slot that has a time: the 100 ms intervals of the monotonic clock are numbered from 0. */
  newestSlot: number;
  /** The sum of all slots. It is stored because every post reads it twice. */
  totalMs: number;
}

/**
 * The longest time for which a piece of work waits for parse time, and the error that it rejects with if it gets none.
 */
interface QueueWaitOptions {
  readonly maxWaitMs: number;
  readonly refusal: () => Error;
}

const ignore = (): void => {};

/**
 * Bounds how long the event loop parses and checks input: for each source in any second, and for all sources in one
 * turn. If there are more than `MAX_TRACKED_SOURCES`, the source that was idle longest is forgotten, and gets its whole
 * budget back.
 */
export class ParseBudget {
  readonly #budgetMs: number;
  readonly #usageBySource = new BoundedCache<SourceKey, SourceUsage>(MAX_TRACKED_SOURCES);
  readonly #waitingParses: (() => void)[] = [];
  /** For each source with a queue: a promise that resolves when the last work in the queue has been done or refused. */
  readonly #queueTailBySource = new Map<SourceKey, Promise<void>>();
  /** The time for which the event loop has parsed without a break. Time that passes without parsing is subtracted. */
  #consecutiveParseMs = 0;
  #lastParseEndedAtMs = 0;

  /** `budgetMs`: how long parsing for one source may hold the event loop within any second (`limits.parse-time`). */
  constructor(budgetMs: number) {
    this.#budgetMs = budgetMs;
  }

  /** Whether the source has parse time left in this second. Source null, the server's own machine, has no bound. */
  hasTimeLeft(source: SourceKey | null, nowMs = performance.now()): boolean {
    if (source === null) return true;
    const usage = this.#usageBySource.get(source);
    return usage === undefined || usedMs(usage, nowMs) < this.#budgetMs;
  }

  /** Runs work, and charges its time to the source; for source null, the server's own machine, to nobody. */
  measure<T>(source: SourceKey | null, work: () => T): T {
    const startedMs = performance.now();
    try {
      return work();
    } finally {
      const endedMs = performance.now();
      if (source !== null) this.charge(source, endedMs - startedMs, endedMs);
      this.#consecutiveParseMs =
        Math.max(0, this.#consecutiveParseMs - (startedMs - this.#lastParseEndedAtMs)) + endedMs - startedMs;
      this.#lastParseEndedAtMs = endedMs;
    }
  }

  /** Charges the time of one piece of work to the source, but at most `MAX_CHARGE_MS`. */
  charge(source: SourceKey, ms: number, nowMs = performance.now()): void {
    let usage = this.#usageBySource.get(source);
    if (usage === undefined) {
      usage = { usedMsBySlot: new Float64Array(WINDOW_SLOTS), newestSlot: 0, totalMs: 0 };
      this.#usageBySource.set(source, usage);
    }
    advanceWindow(usage, nowMs);
    const chargedMs = Math.min(ms, MAX_CHARGE_MS);
    usage.usedMsBySlot[usage.newestSlot % WINDOW_SLOTS]! += chargedMs;
    usage.totalMs += chargedMs;
  }

  /**
   * Charges a time that may exceed `MAX_CHARGE_MS`, such as that of a thread. Source null, the server's own machine, is
   * not charged.
   */
  chargeUncapped(source: SourceKey | null, ms: number): void {
    if (source === null) return;
    for (let rest = ms; rest > 0; rest -= MAX_CHARGE_MS) this.charge(source, rest);
  }

  /**
   * Runs work at once, or in a later turn of the event loop. Rejects with the error of `refusal`, and does not run the
   * work, if the source has no parse time left or too much work waits.
   */
  run<T>(source: SourceKey | null, refusal: () => Error, work: () => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const startWork = (): void => {
        try {
          if (!this.hasTimeLeft(source)) throw refusal();
          resolve(this.measure(source, work));
        } catch (error) {
          reject(error);
        }
      };
      if (this.#hasTurnTimeLeft()) startWork();
      else if (this.#waitingParses.length >= MAX_WAITING_PARSES) reject(refusal());
      else if (this.#waitingParses.push(startWork) === 1) setImmediate(() => this.#runTurn());
    });
  }

  /**
   * As `run`, but waits up to `maxWaitMs` until the source has parse time. The work of one source waits in a queue, so
   * that each piece is charged before the next one begins. Each slot of 100 ms admits a tenth of the budget. Without
   * slots, a source that used its whole budget at once let others wait 56 ms for an answer (99th percentile).
   */
  runQueued<T>(source: SourceKey | null, options: QueueWaitOptions, work: () => T | Promise<T>): Promise<T> {
    const { maxWaitMs: maxMs, refusal } = options;
    if (source === null) return this.run(source, refusal, work);
    const previous = this.#queueTailBySource.get(source);
    if (previous === undefined && this.#hasTurnTimeLeft() && this.#hasTimeLeftInSlot(source))
      return this.run(source, refusal, work);
    const result = this.#waitInQueue(source, { previous, untilMs: performance.now() + maxMs, refusal }).then(() =>
      this.run(source, refusal, work),
    );
    const queueTail = result.then(ignore, ignore);
    this.#queueTailBySource.set(source, queueTail);
    void queueTail.then(() => {
      if (this.#queueTailBySource.get(source) === queueTail) this.#queueTailBySource.delete(source);
    });
    return result;
  }

  async #waitInQueue(
    source: SourceKey,
    {
      previous: previousTail,
      untilMs,
      refusal,
    }: { previous: Promise<void> | undefined; untilMs: number; refusal: () => Error },
  ): Promise<void> {
    if (previousTail !== undefined) {
      await previousTail;
      if (performance.now() >= untilMs) throw refusal();
    }
    while (!this.#hasTimeLeftInSlot(source)) {
      if (performance.now() >= untilMs) throw refusal();
      await wait(WINDOW_SLOT_MS / 4, undefined, { ref: false });
    }
  }

  /** Whether the source has parse time left, in this second and in the current slot. */
  #hasTimeLeftInSlot(source: SourceKey, nowMs = performance.now()): boolean {
    if (!this.hasTimeLeft(source, nowMs)) return false;
    const usage = this.#usageBySource.get(source);
    return (
      usage === undefined || usage.usedMsBySlot[usage.newestSlot % WINDOW_SLOTS]! < this.#budgetMs / (WINDOW_SLOTS - 1)
    );
  }

  /**
   * Whether new work may run in this turn of the event loop: no work waits, and all sources together have time left.
   */
  #hasTurnTimeLeft(): boolean {
    if (this.#waitingParses.length > 0) return false;
    return this.#consecutiveParseMs < MAX_ALL_SOURCES_TURN_MS || this.#parseMsLessPauses() < MAX_ALL_SOURCES_TURN_MS;
  }

  #parseMsLessPauses(): number {
    return Math.max(0, this.#consecutiveParseMs - (performance.now() - this.#lastParseEndedAtMs));
  }

  /** Runs waiting work until the time of a turn is used up. It runs at least one piece, so that each has its turn. */
  #runTurn(): void {
    const startedMs = performance.now();
    do this.#waitingParses.shift()?.();
    while (this.#waitingParses.length > 0 && performance.now() - startedMs < MAX_ALL_SOURCES_TURN_MS);
    if (this.#waitingParses.length > 0) setImmediate(() => this.#runTurn());
  }
}

function usedMs(usage: SourceUsage, nowMs: number): number {
  advanceWindow(usage, nowMs);
  return usage.totalMs;
}

/** Empties the slots that have become more than a second old, and makes the slot of `nowMs` the newest. */
function advanceWindow(usage: SourceUsage, nowMs: number): void {
  const slot = Math.floor(nowMs / WINDOW_SLOT_MS);
  const passedSlots = Math.min(WINDOW_SLOTS, slot - usage.newestSlot);
  if (passedSlots <= 0) return;
  for (let step = 1; step <= passedSlots; step += 1) usage.usedMsBySlot[(usage.newestSlot + step) % WINDOW_SLOTS] = 0;
  if (passedSlots === WINDOW_SLOTS) usage.usedMsBySlot.fill(0);
  usage.newestSlot = slot;
  usage.totalMs = usage.usedMsBySlot.reduce((sum, ms) => sum + ms, 0);
}
