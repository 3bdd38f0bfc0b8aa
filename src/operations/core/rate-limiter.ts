import { BoundedCache } from '../../model/bounded-cache.ts';
import type { SourceKey } from '../../model/source-key.ts';

/** Two numbers as one key. */
export type NumberPair = `${number}:${number}`;

/**
 * A rate with a burst for each key, by the generic cell rate algorithm: one number per key says when the next use would
 * be due at the steady rate. Bounded: the keys used longest ago are forgotten, which can only be in their favour. A key
 * is never an address, of which one customer may have 2^64: see `SourceKey`.
 */
export class RateLimiter<Key extends number | NumberPair | SourceKey> {
  readonly #msPerUse: number;
  readonly #burstMs: number;
  readonly #nextUseByKey: BoundedCache<Key, { dueMs: number }>;

  constructor(options: { perSecond: number; burst: number; keys: number }) {
    this.#msPerUse = 1000 / options.perSecond;
    this.#burstMs = options.burst * this.#msPerUse;
    this.#nextUseByKey = new BoundedCache(options.keys);
  }

  /**
   * Reserves one use and returns in how many ms its turn is; null, without a reservation, if that is beyond
   * `maxWaitMs`.
   */
  reserve(key: Key, maxWaitMs: number, nowMs = performance.now()): number | null {
    const next = this.#nextUseByKey.get(key);
    const due = Math.max(next?.dueMs ?? 0, nowMs) + this.#msPerUse;
    // Whole ms: a rounding error in the twelfth digit must not delay the last use of a burst.
    const waitMs = Math.max(0, Math.floor(due - this.#burstMs - nowMs));
    if (waitMs > maxWaitMs) return null;
    // Changed in place: `set` costs twice as much as the look-up, which has already marked the key as used.
    if (next === undefined) this.#nextUseByKey.set(key, { dueMs: due });
    else next.dueMs = due;
    return waitMs;
  }
}
