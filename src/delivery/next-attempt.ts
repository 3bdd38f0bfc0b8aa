import { longestDelayMs, type RetryPolicy } from '../model/retry-policy.ts';

/** The monotonic time of each `Date` that `dueIn` computed. */
const monotonicTimes = new WeakMap<Date, number>();

/**
 * Returns the time `delayMs` milliseconds from now. `ClockSafeNextAttempt` recognizes this `Date` object and also uses
 * its time on the monotonic clock, since somebody may set the wall clock.
 */
export function dueIn(delayMs: number): Date {
  const at = new Date(Date.now() + delayMs);
  monotonicTimes.set(at, performance.now() + delayMs);
  return at;
}

/**
 * The time at which a lane may try again: as soon as either clock has reached it. The wall clock alone would extend the
 * wait when somebody sets it back, and the monotonic clock alone when the machine sleeps.
 */
export class ClockSafeNextAttempt {
  readonly at: Date;
  readonly #monotonicDueMs: number;

  /** `at`: a result of `dueIn`, or the time in the hook's row or retry row. */
  constructor(at: Date, policy: RetryPolicy) {
    this.at = at;
    const waitMs = at.getTime() - Date.now();
    // If the wait is longer than the longest of the retry policy, the wall clock was set back since `at` was computed:
    // the attempt is due.
    const fallbackDueMs = performance.now() + (waitMs > longestDelayMs(policy) ? 0 : waitMs);
    this.#monotonicDueMs = monotonicTimes.get(at) ?? fallbackDueMs;
  }

  /** Milliseconds from now, 0 when the attempt is due. */
  waitMs(): number {
    return Math.max(0, Math.min(this.at.getTime() - Date.now(), this.#monotonicDueMs - performance.now()));
  }
}
