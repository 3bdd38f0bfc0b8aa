import { setTimeout as wait } from 'node:timers/promises';
import type { SourceKey } from '../model/source-key.ts';
import { RateLimiter } from '../operations/core/rate-limiter.ts';

/** Answers about unknown tokens that may be held back at the same time; the next one is answered at once. */
const MAX_DELAYED_REJECTIONS = 1_000;
const MAX_REJECTION_DELAY_MS = 5_000;
const MAX_SOURCES = 10_000;

/** Slows those down who try tokens: each source gets a steady rate of refusals, and the rest of them late. */
export class AuthThrottle {
  readonly #rejectionRate: RateLimiter<SourceKey>;
  #delayedRejections = 0;

  constructor(perSecond: number) {
    this.#rejectionRate = new RateLimiter({ perSecond, burst: perSecond * 5, keys: MAX_SOURCES });
  }

  /** Resolves when this source may be told; within 5 s. */
  async delayRejection(source: SourceKey): Promise<void> {
    const waitMs = this.#rejectionRate.reserve(source, MAX_REJECTION_DELAY_MS) ?? MAX_REJECTION_DELAY_MS;
    if (waitMs === 0 || this.#delayedRejections >= MAX_DELAYED_REJECTIONS) return;
    this.#delayedRejections += 1;
    try {
      await wait(waitMs);
    } finally {
      this.#delayedRejections -= 1;
    }
  }
}
