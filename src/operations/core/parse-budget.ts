import { setTimeout as wait } from 'node:timers/promises';
import { BoundedCache } from '../../model/bounded-cache.ts';
import type { SourceKey } from '../../model/source-key.ts';

/** A second and the slot that is being filled, so that no second holds more than the budget. */
const SLOTS = 11;
const SLOT_MS = 100;
/**
 * What one piece of work counts at most. No input within its limits takes a fifth of that: what was measured beyond it is
 * the operating system, which ran something else.
 */
const MAX_CHARGE_MS = 50;
/** Two MiB of memory at most. */
const SOURCES = 10_000;
/** Parsing of all sources that follows each other holds the event loop so long; then everything else has a turn. */
const MAX_TURN_MS = 5;
/** Bodies that wait for the next turn. */
const MAX_WAITING = 1_000;

interface Usage {
  readonly slots: Float64Array;
  /** The number of the slot that was last counted in, since the start of the process. */
  newest: number;
}

/** How long a caller waits for time, and what it is refused with when it gets none. */
interface WaitOptions {
  readonly maxMs: number;
  readonly refusal: () => Error;
}

const ignore = (): void => {};

/**
 * Bounds how long the event loop parses and checks what callers send: by source, and in one turn. Sources are few enough
 * to be kept: the one that was quiet longest is forgotten, which only ever forgives.
 */
export class ParseBudget {
  readonly #budgetMs: number;
  readonly #usages = new BoundedCache<SourceKey, Usage>(SOURCES);
  readonly #waiting: (() => void)[] = [];
  /** The end of the line of each source that has callers who wait: resolves when the last of them has had its turn. */
  readonly #queues = new Map<SourceKey, Promise<void>>();
  /** Time that was just spent in parsing, less what was spent since then with something else. */
  #recentMs = 0;
  #recentAtMs = 0;

  /** `budgetMs`: how long parsing for one source may hold the event loop within any second (`limits.parse-time`). */
  constructor(budgetMs: number) {
    this.#budgetMs = budgetMs;
  }

  /** Whether the source has time left. Null is the server's own machine, which has no bound. */
  hasTimeLeft(source: SourceKey | null, nowMs = performance.now()): boolean {
    if (source === null) return true;
    const usage = this.#usages.get(source);
    return usage === undefined || usedMs(usage, nowMs) < this.#budgetMs;
  }

  /** Does what takes time and counts it for the source. */
  measure<T>(source: SourceKey | null, work: () => T): T {
    const startedMs = performance.now();
    try {
      return work();
    } finally {
      const endedMs = performance.now();
      if (source !== null) this.charge(source, endedMs - startedMs, endedMs);
      this.#recentMs = Math.max(0, this.#recentMs - (startedMs - this.#recentAtMs)) + endedMs - startedMs;
      this.#recentAtMs = endedMs;
    }
  }

  /** Counts time that the source has taken. */
  charge(source: SourceKey, ms: number, nowMs = performance.now()): void {
    let usage = this.#usages.get(source);
    if (usage === undefined) {
      usage = { slots: new Float64Array(SLOTS), newest: 0 };
      this.#usages.set(source, usage);
    }
    advance(usage, nowMs);
    usage.slots[usage.newest % SLOTS]! += Math.min(ms, MAX_CHARGE_MS);
  }

  /**
   * Parses, at once or in the next turn of the event loop. Rejects with what `refusal` gives for a source whose time is
   * used up: nothing is parsed then.
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
      if (this.#isTurnFree()) start();
      else if (this.#waiting.length >= MAX_WAITING) reject(refusal());
      else if (this.#waiting.push(start) === 1) setImmediate(() => this.#runTurn());
    });
  }

  /**
   * As `run`, but waits up to `maxMs` until the source has time. Callers of one source wait in a line, so that the first
   * is charged before the next looks at the time that is left, and each tenth of a second gives them a tenth of the
   * budget: a source that used up its second at once let others wait 56 ms (99th percentile) for an answer.
   */
  runQueued<T>(source: SourceKey | null, options: WaitOptions, work: () => T | Promise<T>): Promise<T> {
    const { maxMs, refusal } = options;
    if (source === null) return this.run(source, refusal, work);
    const previous = this.#queues.get(source);
    if (previous === undefined && this.#isTurnFree() && this.#hasTimeNow(source))
      return this.run(source, refusal, work);
    const result = this.#waitInQueue(source, { previous, untilMs: performance.now() + maxMs, refusal }).then(() =>
      this.run(source, refusal, work),
    );
    const last = result.then(ignore, ignore);
    this.#queues.set(source, last);
    void last.then(() => {
      if (this.#queues.get(source) === last) this.#queues.delete(source);
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
    while (!this.#hasTimeNow(source)) {
      if (performance.now() >= untilMs) throw refusal();
      await wait(SLOT_MS / 4, undefined, { ref: false });
    }
  }

  /** Whether the source has time left in this second and in this slot. */
  #hasTimeNow(source: SourceKey, nowMs = performance.now()): boolean {
    if (!this.hasTimeLeft(source, nowMs)) return false;
    const usage = this.#usages.get(source);
    return usage === undefined || usage.slots[usage.newest % SLOTS]! < this.#budgetMs / (SLOTS - 1);
  }

  /** Whether work can be done at once. */
  #isTurnFree(): boolean {
    return this.#waiting.length === 0 && this.#recentParseMs() < MAX_TURN_MS;
  }

  #recentParseMs(): number {
    return Math.max(0, this.#recentMs - (performance.now() - this.#recentAtMs));
  }

  /** One at least, so that everything that waits has its turn in the end. */
  #runTurn(): void {
    const startedMs = performance.now();
    do this.#waiting.shift()?.();
    while (this.#waiting.length > 0 && performance.now() - startedMs < MAX_TURN_MS);
    if (this.#waiting.length > 0) setImmediate(() => this.#runTurn());
  }
}

function usedMs(usage: Usage, nowMs: number): number {
  advance(usage, nowMs);
  return usage.slots.reduce((sum, ms) => sum + ms, 0);
}

/** Empties the slots that have become more than a second old. */
function advance(usage: Usage, nowMs: number): void {
  const slot = Math.floor(nowMs / SLOT_MS);
  const passed = Math.min(SLOTS, slot - usage.newest);
  for (let step = 1; step <= passed; step += 1) usage.slots[(usage.newest + step) % SLOTS] = 0;
  if (passed === SLOTS) usage.slots.fill(0);
  usage.newest = Math.max(usage.newest, slot);
}
