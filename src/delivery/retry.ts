export interface RetrySchedule {
  /** Waits before each repeat, in ms; the last one goes on for ever. */
  readonly retryMs: readonly number[];
  readonly retryAfterMaxMs: number;
}

/** Spread of the waits, so that lanes that failed together do not come back together. */
const JITTER = 0.2;

/**
 * How long to wait after the `failures`-th failure in a row (1 for the first), in ms. A receiver's `Retry-After` can
 * make it longer, up to its bound, never shorter. `random` is in [0, 1).
 */
export function retryDelayMs(
  schedule: RetrySchedule,
  failure: { failures: number; retryAfterMs: number | null },
  random: number,
): number {
  const { retryMs, retryAfterMaxMs } = schedule;
  const step = retryMs[Math.min(failure.failures, retryMs.length) - 1] ?? retryAfterMaxMs;
  const jittered = step * (1 - JITTER + 2 * JITTER * random);
  return Math.round(Math.max(jittered, Math.min(failure.retryAfterMs ?? 0, retryAfterMaxMs)));
}

/** No wait is longer than this. */
export function longestDelayMs(schedule: RetrySchedule): number {
  return Math.max(schedule.retryAfterMaxMs, ...schedule.retryMs.map((ms) => ms * (1 + JITTER)));
}
