import { setTimeout as wait } from 'node:timers/promises';
import type { SourceKey } from '../model/source-key.ts';
import { RateLimiter } from '../operations/core/rate-limiter.ts';

/** Answers about unknown tokens that may be held back at the same time; the next one is answered at once. */
const MAX_DELAYED = 1_000;
const MAX_WAIT_MS = 5_000;
const MAX_SOURCES = 10_000;

/** Slows those down who try tokens: each source gets a steady rate of refusals, and the rest of them late. */
export class AuthThrottle {
  readonly #rate: RateLimiter<SourceKey>;
  #delayed = 0;

  constructor(perSecond: number) {
    this.#rate = new RateLimiter({ perSecond, burst: perSecond * 5, keys: MAX_SOURCES });
  }

  /** Resolves when this source may be told; within 5 s. */
  async delay(source: SourceKey): Promise<void> {
    const waitMs = this.#rate.reserve(source, MAX_WAIT_MS) ?? MAX_WAIT_MS;
    if (waitMs === 0 || this.#delayed >= MAX_DELAYED) return;
    this.#delayed += 1;
    try {
      await wait(waitMs);
    } finally {
      this.#delayed -= 1;
    }
  }
}
