/** The times at which failed deliveries and failed pushes are tried again (`delivery.retry`, `push.retry`). */
export interface RetryPolicy {
  /** Delays before each retry, in ms; the last one applies to all later retries. At least one. */
  readonly retryDelaysMs: readonly number[];
  /** A longer `Retry-After` of a receiver is reduced to this time, in ms. */
  readonly retryAfterMaxMs: number;
}

/**
 * The share by which a delay varies at random in both directions, so that requests that failed together are not retried
 * together.
 */
const JITTER = 0.2;

/**
 * The delay after the `failures`-th failure in a row (1 for the first), in ms. A receiver's `Retry-After` makes it
 * longer, never shorter. `random` is in [0, 1).
 */
export function retryDelayMs(
  { retryDelaysMs, retryAfterMaxMs }: RetryPolicy,
  failure: { failures: number; retryAfterMs: number | null },
  random: number,
): number {
  const baseDelayMs = retryDelaysMs[Math.min(failure.failures, retryDelaysMs.length) - 1] ?? retryAfterMaxMs;
  const jittered = baseDelayMs * (1 - JITTER + 2 * JITTER * random);
  return Math.round(Math.max(jittered, Math.min(failure.retryAfterMs ?? 0, retryAfterMaxMs)));
}

/** No delay is longer than this, in ms. */
export function longestDelayMs({ retryDelaysMs, retryAfterMaxMs }: RetryPolicy): number {
  return Math.max(retryAfterMaxMs, ...retryDelaysMs.map((ms) => ms * (1 + JITTER)));
}
