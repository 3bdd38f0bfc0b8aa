import { setTimeout as wait } from 'node:timers/promises';
import { BoundedCache } from '../model/bounded-cache.ts';
import type { SourceKey } from '../model/source-key.ts';

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
const TURN_MS = 5;
/** Bodies that wait for the next turn. */
const MAX_WAITING = 1_000;

interface Usage {
  readonly slots: Float64Array;
  /** The number of the slot that was last counted in, since the start of the process. */
  newest: number;
}

/**
 * Bounds how long the event loop parses and checks what callers send: by source, and in one turn. Sources are few enough
 * to be kept: the one that was quiet longest is forgotten, which only ever forgives.
 */
export class ParseBudget {
  readonly #budgetMs: number;
  readonly #usages = new BoundedCache<SourceKey, Usage>(SOURCES);
  readonly #waiting: (() => void)[] = [];
  /** Time that was just spent in parsing, less what was spent since then with something else. */
  #recentMs = 0;
  #recentAtMs = 0;

  /** `budgetMs`: how long parsing for one source may hold the event loop within any second (`limits.parse-time`). */
  constructor(budgetMs: number) {
    this.#budgetMs = budgetMs;
  }

  /** Whether the source has time left. Null is the server's own machine, which has no bound. */
  admits(source: SourceKey | null, nowMs = performance.now()): boolean {
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

  /** Resolves to whether the source gets time within `maxMs`. */
  async awaits(source: SourceKey | null, maxMs: number): Promise<boolean> {
    const untilMs = performance.now() + maxMs;
    while (!this.admits(source)) {
      if (performance.now() >= untilMs) return false;
      await wait(SLOT_MS, undefined, { ref: false });
    }
    return true;
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
          if (!this.admits(source)) throw refusal();
          resolve(this.measure(source, work));
        } catch (error) {
          reject(error);
        }
      };
      if (this.#waiting.length === 0 && this.#recent() < TURN_MS) start();
      else if (this.#waiting.length >= MAX_WAITING) reject(refusal());
      else if (this.#waiting.push(start) === 1) setImmediate(() => this.#turn());
    });
  }

  #recent(): number {
    return Math.max(0, this.#recentMs - (performance.now() - this.#recentAtMs));
  }

  /** One at least, so that everything that waits has its turn in the end. */
  #turn(): void {
    const startedMs = performance.now();
    do this.#waiting.shift()?.();
    while (this.#waiting.length > 0 && performance.now() - startedMs < TURN_MS);
    if (this.#waiting.length > 0) setImmediate(() => this.#turn());
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
