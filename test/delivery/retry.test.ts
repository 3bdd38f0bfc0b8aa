import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { longestDelayMs, NextAttempt, retryDelayMs, dueIn } from '../../src/delivery/retry.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const schedule = {
  retryMs: [5_000, 30_000, 2 * MINUTE_MS, 10 * MINUTE_MS, 30 * MINUTE_MS, HOUR_MS],
  retryAfterMaxMs: HOUR_MS,
};
const middle = 0.5;

describe('the wait before a repeat', () => {
  test.each([
    [1, 5_000],
    [2, 30_000],
    [3, 2 * MINUTE_MS],
    [4, 10 * MINUTE_MS],
    [5, 30 * MINUTE_MS],
    [6, HOUR_MS],
    [7, HOUR_MS],
    [1_000, HOUR_MS],
  ])('after failure %i is %i ms in the middle of its spread', (failures, expected) => {
    expect(retryDelayMs(schedule, { failures, retryAfterMs: null }, middle)).toBe(expected);
  });

  test('is spread by 20 % to both sides', () => {
    expect(retryDelayMs(schedule, { failures: 2, retryAfterMs: null }, 0)).toBe(24_000);
    expect(retryDelayMs(schedule, { failures: 2, retryAfterMs: null }, 0.999_999)).toBe(36_000);
  });

  test('is made longer by Retry-After, up to an hour, and never shorter', () => {
    expect(retryDelayMs(schedule, { failures: 1, retryAfterMs: 90_000 }, middle)).toBe(90_000);
    expect(retryDelayMs(schedule, { failures: 1, retryAfterMs: 5 * HOUR_MS }, middle)).toBe(HOUR_MS);
    expect(retryDelayMs(schedule, { failures: 3, retryAfterMs: 1_000 }, middle)).toBe(2 * MINUTE_MS);
  });

  test('is never longer than the longest that is told', () => {
    const longest = longestDelayMs(schedule);
    expect(retryDelayMs(schedule, { failures: 9, retryAfterMs: 9 * HOUR_MS }, 0.999_999)).toBeLessThanOrEqual(longest);
  });
});

describe('the next attempt', () => {
  afterEach(() => void jest.restoreAllMocks());

  const inTenMinutes = (): Date => new Date(Date.now() + 10 * MINUTE_MS);
  const turnClock = (ms: number): void => {
    const now = Date.now();
    jest.spyOn(Date, 'now').mockReturnValue(now + ms);
  };

  test('is due at once when its time has passed', () => {
    expect(new NextAttempt(new Date(Date.now() - 1), schedule).waitMs()).toBe(0);
  });

  test('is waited for as long as it was set for', () => {
    const waitMs = new NextAttempt(inTenMinutes(), schedule).waitMs();
    expect(waitMs).toBeGreaterThan(9 * MINUTE_MS);
    expect(waitMs).toBeLessThanOrEqual(10 * MINUTE_MS);
  });

  test('is not waited for any longer when the clock is set back meanwhile', () => {
    const next = new NextAttempt(inTenMinutes(), schedule);
    turnClock(-30 * MINUTE_MS);
    expect(next.waitMs()).toBeLessThanOrEqual(10 * MINUTE_MS);
  });

  test('is not waited for any longer when the clock is set back before anybody waits for it', () => {
    const at = dueIn(10 * MINUTE_MS);
    turnClock(-30 * MINUTE_MS);
    const waitMs = new NextAttempt(at, schedule).waitMs();
    expect(waitMs).toBeGreaterThan(9 * MINUTE_MS);
    expect(waitMs).toBeLessThanOrEqual(10 * MINUTE_MS);
  });

  test('is due as soon as the wall clock says so, which goes on while a machine sleeps', () => {
    const next = new NextAttempt(inTenMinutes(), schedule);
    turnClock(11 * MINUTE_MS);
    expect(next.waitMs()).toBe(0);
  });

  test('is due at once when it was written by a clock that has been set back since by more than any wait', () => {
    const at = inTenMinutes();
    turnClock(-2 * HOUR_MS);
    expect(new NextAttempt(at, schedule).waitMs()).toBe(0);
  });
});
