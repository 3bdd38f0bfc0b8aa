import { longestDelayMs, type RetryPolicy } from '../model/retry-policy.ts';

/** The monotonic time of each `Date` that `dueIn` computed. */
const monotonicTimes = new WeakMap<Date, number>();

/**
 * The time `delayMs` milliseconds from now. `ClockSafeNextAttempt` recognizes this `Date` and uses its monotonic time,
 * since the clock may be set before a lane waits for it.
 */
export function dueIn(delayMs: number): Date {
  const at = new Date(Date.now() + delayMs);
  monotonicTimes.set(at, performance.now() + delayMs);
  return at;
}

/**
 * When a lane may try again: as soon as either clock has reached the time. The wall clock alone would extend the wait
 * when somebody sets it back, the monotonic one alone when the machine sleeps.
 */
export class ClockSafeNextAttempt {
  readonly at: Date;
  readonly #monotonicMs: number;

  /** `at` comes from `dueIn` or from the row. */
  constructor(at: Date, policy: RetryPolicy) {
    this.at = at;
    const waitMs = at.getTime() - Date.now();
    // A wait longer than any that is ever set means that the clock was set back since: the attempt is due.
    const setMs = performance.now() + (waitMs > longestDelayMs(policy) ? 0 : waitMs);
    this.#monotonicMs = monotonicTimes.get(at) ?? setMs;
  }

  /** Milliseconds from now, 0 when the attempt is due. */
  waitMs(): number {
    return Math.max(0, Math.min(this.at.getTime() - Date.now(), this.#monotonicMs - performance.now()));
  }
}
