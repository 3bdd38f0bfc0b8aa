import { longestDelayMs, type RetryPolicy } from '../model/retry-policy.ts';

/** What the monotonic clock says at times that were computed here. */
const monotonicTimes = new WeakMap<Date, number>();

/** The time in so many ms, which `ClockSafeNextAttempt` knows again: the clock may be set before anybody waits for it. */
export function dueIn(delayMs: number): Date {
  const at = new Date(Date.now() + delayMs);
  monotonicTimes.set(at, performance.now() + delayMs);
  return at;
}

/**
 * When a lane may try again: as soon as either clock says so. The wall clock alone would keep it waiting for as much as
 * somebody set the clock back, the monotonic one alone for as long as the machine slept.
 */
export class ClockSafeNextAttempt {
  readonly at: Date;
  readonly #monotonicMs: number;

  /** `at` is of `dueIn`, or what stands in the row. */
  constructor(at: Date, policy: RetryPolicy) {
    this.at = at;
    const waitMs = at.getTime() - Date.now();
    // Longer than any wait that is ever set: the clock was put back since it was written, so the attempt is due.
    const setMs = performance.now() + (waitMs > longestDelayMs(policy) ? 0 : waitMs);
    this.#monotonicMs = monotonicTimes.get(at) ?? setMs;
  }

  /** How long to wait from now, 0 when it is time. */
  waitMs(): number {
    return Math.max(0, Math.min(this.at.getTime() - Date.now(), this.#monotonicMs - performance.now()));
  }
}
