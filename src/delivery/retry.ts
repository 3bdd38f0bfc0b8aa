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

/** What the monotonic clock says at times that were computed here. */
const monotonicTimes = new WeakMap<Date, number>();

/** The time in so many ms, which `NextAttempt` knows again: the clock may be set before anybody waits for it. */
export function dueIn(delayMs: number): Date {
  const at = new Date(Date.now() + delayMs);
  monotonicTimes.set(at, performance.now() + delayMs);
  return at;
}

/**
 * When a lane may try again: as soon as either clock says so. The wall clock alone would keep it waiting for as much as
 * somebody set the clock back, the monotonic one alone for as long as the machine slept.
 */
export class NextAttempt {
  readonly at: Date;
  readonly #monotonicMs: number;

  /** `at` is of `dueIn`, or what stands in the row. */
  constructor(at: Date, schedule: RetrySchedule) {
    this.at = at;
    const waitMs = at.getTime() - Date.now();
    // Longer than any wait that is ever set: the clock was put back since it was written, so the attempt is due.
    const setMs = performance.now() + (waitMs > longestDelayMs(schedule) ? 0 : waitMs);
    this.#monotonicMs = monotonicTimes.get(at) ?? setMs;
  }

  /** How long to wait from now, 0 when it is time. */
  waitMs(): number {
    return Math.max(0, Math.min(this.at.getTime() - Date.now(), this.#monotonicMs - performance.now()));
  }
}
