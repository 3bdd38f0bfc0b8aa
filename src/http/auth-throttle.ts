import { setTimeout as wait } from 'node:timers/promises';
import type { SourceKey } from '../model/source-key.ts';
import { RateLimiter } from '../operations/core/rate-limiter.ts';

/** The most refusals that are delayed at the same time; any further refusal is sent at once. */
const MAX_DELAYED_REJECTIONS = 1_000;
const MAX_REJECTION_DELAY_MS = 5_000;
const MAX_TRACKED_SOURCES = 10_000;

/** Slows down a source that guesses tokens: above a steady rate, the source gets each refusal after a delay. */
export class AuthThrottle {
  readonly #rejectionRate: RateLimiter<SourceKey>;
  #delayedRejections = 0;

  constructor(rejectionsPerSecond: number) {
    this.#rejectionRate = new RateLimiter({
      perSecond: rejectionsPerSecond,
      burst: rejectionsPerSecond * 5,
      maxKeys: MAX_TRACKED_SOURCES,
    });
  }

  /** Resolves when the refusal may be sent to this source, after at most 5 s. */
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
