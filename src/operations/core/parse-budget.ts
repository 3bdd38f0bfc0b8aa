import { setTimeout as wait } from 'node:timers/promises';
import { BoundedCache } from '../../model/bounded-cache.ts';
import type { SourceKey } from '../../model/source-key.ts';

/** The slots of a second, and the one that is being filled: so no second holds more than the budget. */
const WINDOW_SLOTS = 11;
const WINDOW_SLOT_MS = 100;
/**
 * The most time that one piece of work is charged. No input within its limits takes a fifth of that; a longer
 * measurement includes time in which the operating system ran something else.
 */
const MAX_CHARGE_MS = 50;
/** Two MiB of memory at most. */
const MAX_TRACKED_SOURCES = 10_000;
/** Consecutive parsing for all sources holds the event loop at most this long; then other work gets a turn. */
const MAX_ALL_SOURCES_TURN_MS = 5;
/** Bodies that wait for the next turn. */
const MAX_WAITING_PARSES = 1_000;

interface SourceUsage {
  readonly usedMsBySlot: Float64Array;
  /** The number of the slot that was last counted in, since the start of the process. */
  newestSlot: number;
}

/** How long a caller waits for parse time, and the error that it gets when none is left. */
interface QueueWaitOptions {
  readonly maxMs: number;
  readonly refusal: () => Error;
}

const ignore = (): void => {};

/**
 * Bounds how long the event loop parses and checks input: per source, and per turn. It keeps a limited number of
 * sources and forgets the one that was idle longest, which can only give time back.
 */
export class ParseBudget {
  readonly #budgetMs: number;
  readonly #usageBySource = new BoundedCache<SourceKey, SourceUsage>(MAX_TRACKED_SOURCES);
  readonly #waitingParses: (() => void)[] = [];
  /** The tail of each source's queue: resolves when the last waiting caller has had its turn. */
  readonly #queueTailBySource = new Map<SourceKey, Promise<void>>();
  /** Time that was just spent on parsing, less the time spent since then on something else. */
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

  /** Runs work and charges its time to the source. */
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

  /** Charges time to the source. */
  charge(source: SourceKey, ms: number, nowMs = performance.now()): void {
    let usage = this.#usageBySource.get(source);
    if (usage === undefined) {
      usage = { usedMsBySlot: new Float64Array(WINDOW_SLOTS), newestSlot: 0 };
      this.#usageBySource.set(source, usage);
    }
    advanceWindow(usage, nowMs);
    usage.usedMsBySlot[usage.newestSlot % WINDOW_SLOTS]! += Math.min(ms, MAX_CHARGE_MS);
  }

  /** Charges the whole of a longer time, such as that of a thread. Null is the server's own machine. */
  chargeAll(source: SourceKey | null, ms: number): void {
    if (source === null) return;
    for (let rest = ms; rest > 0; rest -= MAX_CHARGE_MS) this.charge(source, rest);
  }

  /**
   * Runs `work` at once or in a later turn of the event loop. For a source whose time is used up, it does not run it
   * and rejects with the error of `refusal`.
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
   * As `run`, but waits up to `maxMs` until the source has time. Callers of one source queue, so that the first is
   * charged before the next checks the time left. Each tenth of a second gives them a tenth of the budget. When a
   * source could use up its second at once, others waited 56 ms (99th percentile) for an answer.
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

  /** Whether the current turn has time for more work. */
  #hasTurnTimeLeft(): boolean {
    return this.#waitingParses.length === 0 && this.#parseMsLessPauses() < MAX_ALL_SOURCES_TURN_MS;
  }

  #parseMsLessPauses(): number {
    return Math.max(0, this.#consecutiveParseMs - (performance.now() - this.#lastParseEndedAtMs));
  }

  /** Runs at least one, so that every waiting parse gets its turn. */
  #runTurn(): void {
    const startedMs = performance.now();
    do this.#waitingParses.shift()?.();
    while (this.#waitingParses.length > 0 && performance.now() - startedMs < MAX_ALL_SOURCES_TURN_MS);
    if (this.#waitingParses.length > 0) setImmediate(() => this.#runTurn());
  }
}

function usedMs(usage: SourceUsage, nowMs: number): number {
  advanceWindow(usage, nowMs);
  return usage.usedMsBySlot.reduce((sum, ms) => sum + ms, 0);
}

/** Empties the slots that have become more than a second old. */
function advanceWindow(usage: SourceUsage, nowMs: number): void {
  const slot = Math.floor(nowMs / WINDOW_SLOT_MS);
  const passed = Math.min(WINDOW_SLOTS, slot - usage.newestSlot);
  for (let step = 1; step <= passed; step += 1) usage.usedMsBySlot[(usage.newestSlot + step) % WINDOW_SLOTS] = 0;
  if (passed === WINDOW_SLOTS) usage.usedMsBySlot.fill(0);
  usage.newestSlot = Math.max(usage.newestSlot, slot);
}
