import { BoundedCache } from '../../model/bounded-cache.ts';
import type { SourceKey } from '../../model/source-key.ts';

/** A key of two numbers, such as those of a conversation and an account. */
export type NumberPair = `${number}:${number}`;

/**
 * Limits the uses of each key to a steady rate with a burst, by the generic cell rate algorithm. It stores when the
 * next use of a key would be due at the steady rate. Of too many keys, the one that was unused longest is forgotten,
 * and gets its whole burst back. A key is never an IP address: one customer may have 2^64 of them (see `SourceKey`).
 */
export class RateLimiter<Key extends number | NumberPair | SourceKey> {
  readonly #msPerUse: number;
  readonly #burstMs: number;
  readonly #nextUseByKey: BoundedCache<Key, { dueMs: number }>;

  constructor(options: { perSecond: number; burst: number; maxKeys: number }) {
    this.#msPerUse = 1000 / options.perSecond;
    this.#burstMs = options.burst * this.#msPerUse;
    this.#nextUseByKey = new BoundedCache(options.maxKeys);
  }

  /**
   * Reserves a use, and returns the ms until it may happen. If they exceed `maxWaitMs`, it reserves nothing and returns
   * null.
   */
  reserve(key: Key, maxWaitMs: number, nowMs = performance.now()): number | null {
    const nextUse = this.#nextUseByKey.get(key);
    const dueMs = Math.max(nextUse?.dueMs ?? 0, nowMs) + this.#msPerUse;
    // The wait is rounded down to whole ms: a rounding error in the twelfth digit must not delay the last use of a
    // burst.
    const waitMs = Math.max(0, Math.floor(dueMs - this.#burstMs - nowMs));
    if (waitMs > maxWaitMs) return null;
    // The entry is changed in place: `set` takes twice as long as the look-up, which has already marked the key as
    // recently used.
    if (nextUse === undefined) this.#nextUseByKey.set(key, { dueMs: dueMs });
    else nextUse.dueMs = dueMs;
    return waitMs;
  }
}
