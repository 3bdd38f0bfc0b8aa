import { setTimeout as wait } from 'node:timers/promises';
import { BoundedCache } from '../../model/bounded-cache.ts';
import type { SourceKey } from '../../model/source-key.ts';

/** The slots of a second, and the slot that is being filled, so that no second holds more than the budget. */
const WINDOW_SLOTS = 11;
const WINDOW_SLOT_MS = 100;
/**
 * One piece of work is charged at most this time. No input within its limits takes a fifth of it: if more was measured,
 * the operating system ran something else meanwhile.
 */
const MAX_CHARGE_MS = 50;
/** Two MiB of memory at most. */
const MAX_TRACKED_SOURCES = 10_000;
/** Consecutive parsing of all sources may hold the event loop for this long; then everything else has a turn. */
const MAX_ALL_SOURCES_TURN_MS = 5;
/** Bodies that wait for the next turn. */
const MAX_WAITING_PARSES = 1_000;

interface SourceUsage {
  readonly usedMsBySlot: Float64Array;
  /** The number of the slot that was last counted in, since the start of the process. */
  newestSlot: number;
  /** The sum of all slots, kept so that a look at it, which every post takes twice, adds nothing up. */
  totalMs: number;
}

/** How long a caller waits for parse time, and the error if it gets none. */
interface QueueWaitOptions {
  readonly maxMs: number;
  readonly refusal: () => Error;
}

const ignore = (): void => {};

/**
 * Bounds how long the event loop parses and checks input: by source, and in one turn. Of too many sources, the one that
 * was quiet longest is forgotten, which can only be in its favour.
 */
export class ParseBudget {
  readonly #budgetMs: number;
  readonly #usageBySource = new BoundedCache<SourceKey, SourceUsage>(MAX_TRACKED_SOURCES);
  readonly #waitingParses: (() => void)[] = [];
  /** The end of the queue of each source that has waiting callers: resolves when the last of them has had its turn. */
  readonly #queueTailBySource = new Map<SourceKey, Promise<void>>();
  /** Time that was just spent in parsing, less what was spent since then with something else. */
  #consecutiveParseMs = 0;
  #lastParseEndedAtMs = 0;

  /** `budgetMs`: how long parsing for one source may hold the event loop within any second (`limits.parse-time`). */
  constructor(budgetMs: number) {
    this.#budgetMs = budgetMs;
  }

  /** Whether the source has time left. Null is the server's own machine, which has no bound. */
  hasTimeLeft(source: SourceKey | null, nowMs = performance.now()): boolean {
    if (source === null) return true;
    const usage = this.#usageBySource.get(source);
    return usage === undefined || usedMs(usage, nowMs) < this.#budgetMs;
  }

  /** Runs work, and charges its time to the source. */
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

  /** Charges the time of one piece of work to the source. */
  charge(source: SourceKey, ms: number, nowMs = performance.now()): void {
    let usage = this.#usageBySource.get(source);
    if (usage === undefined) {
      usage = { usedMsBySlot: new Float64Array(WINDOW_SLOTS), newestSlot: 0, totalMs: 0 };
      this.#usageBySource.set(source, usage);
    }
    advanceWindow(usage, nowMs);
    const charged = Math.min(ms, MAX_CHARGE_MS);
    usage.usedMsBySlot[usage.newestSlot % WINDOW_SLOTS]! += charged;
    usage.totalMs += charged;
  }

  /** Charges the whole of a longer time, such as that of a thread. Null is the server's own machine. */
  chargeAll(source: SourceKey | null, ms: number): void {
    if (source === null) return;
    for (let rest = ms; rest > 0; rest -= MAX_CHARGE_MS) this.charge(source, rest);
  }

  /**
   * Runs work at once or in the next turn of the event loop. Rejects with what `refusal` gives for a source whose time
   * is used up: nothing is parsed then.
   */
  run<T>(source: SourceKey | null, refusal: () => Error, work: () => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const start = (): void => {
        try {
          if (!this.hasTimeLeft(source)) throw refusal();
          resolve(this.measure(source, work));
        } catch (error) {
          reject(error);
        }
      };
      if (this.#hasTurnTimeLeft()) start();
      else if (this.#waitingParses.length >= MAX_WAITING_PARSES) reject(refusal());
      else if (this.#waitingParses.push(start) === 1) setImmediate(() => this.#runTurn());
    });
  }

  /**
   * As `run`, but waits up to `maxMs` until the source has time. Callers of one source wait in a queue, so that the
   * first is charged before the next looks at the time that is left. Each tenth of a second gives them a tenth of the
   * budget: a source that used up its second at once let others wait 56 ms (99th percentile) for an answer.
   */
  runQueued<T>(source: SourceKey | null, options: QueueWaitOptions, work: () => T | Promise<T>): Promise<T> {
    const { maxMs, refusal } = options;
    if (source === null) return this.run(source, refusal, work);
    const previous = this.#queueTailBySource.get(source);
    if (previous === undefined && this.#hasTurnTimeLeft() && this.#hasTimeLeftInSlot(source))
      return this.run(source, refusal, work);
    const result = this.#waitInQueue(source, { previous, untilMs: performance.now() + maxMs, refusal }).then(() =>
      this.run(source, refusal, work),
    );
    const last = result.then(ignore, ignore);
    this.#queueTailBySource.set(source, last);
    void last.then(() => {
      if (this.#queueTailBySource.get(source) === last) this.#queueTailBySource.delete(source);
    });
    return result;
  }

  async #waitInQueue(
    source: SourceKey,
    { previous, untilMs, refusal }: { previous: Promise<void> | undefined; untilMs: number; refusal: () => Error },
  ): Promise<void> {
    if (previous !== undefined) {
      await previous;
      if (performance.now() >= untilMs) throw refusal();
    }
    while (!this.#hasTimeLeftInSlot(source)) {
      if (performance.now() >= untilMs) throw refusal();
      await wait(WINDOW_SLOT_MS / 4, undefined, { ref: false });
    }
  }

  /** Whether the source has time left in this second and in this slot. */
  #hasTimeLeftInSlot(source: SourceKey, nowMs = performance.now()): boolean {
    if (!this.hasTimeLeft(source, nowMs)) return false;
    const usage = this.#usageBySource.get(source);
    return (
      usage === undefined || usage.usedMsBySlot[usage.newestSlot % WINDOW_SLOTS]! < this.#budgetMs / (WINDOW_SLOTS - 1)
    );
  }

  /** Whether work can be done at once. */
  #hasTurnTimeLeft(): boolean {
    if (this.#waitingParses.length > 0) return false;
    return this.#consecutiveParseMs < MAX_ALL_SOURCES_TURN_MS || this.#parseMsLessPauses() < MAX_ALL_SOURCES_TURN_MS;
  }

  #parseMsLessPauses(): number {
    return Math.max(0, this.#consecutiveParseMs - (performance.now() - this.#lastParseEndedAtMs));
  }

  /** Runs at least one, so that every waiting piece of work has its turn in the end. */
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

/** Empties the slots that have become more than a second old. */
function advanceWindow(usage: SourceUsage, nowMs: number): void {
  const slot = Math.floor(nowMs / WINDOW_SLOT_MS);
  const passed = Math.min(WINDOW_SLOTS, slot - usage.newestSlot);
  if (passed <= 0) return;
  for (let step = 1; step <= passed; step += 1) usage.usedMsBySlot[(usage.newestSlot + step) % WINDOW_SLOTS] = 0;
  if (passed === WINDOW_SLOTS) usage.usedMsBySlot.fill(0);
  usage.newestSlot = slot;
  usage.totalMs = usage.usedMsBySlot.reduce((sum, ms) => sum + ms, 0);
}
