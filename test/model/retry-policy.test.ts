import { describe, expect, test } from '@jest/globals';
import { longestDelayMs, retryDelayMs } from '../../src/model/retry-policy.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const policy = {
  retryDelaysMs: [5_000, 30_000, 2 * MINUTE_MS, 10 * MINUTE_MS, 30 * MINUTE_MS, HOUR_MS],
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
    expect(retryDelayMs(policy, { failures, retryAfterMs: null }, middle)).toBe(expected);
  });

  test('is spread by 20 % to both sides', () => {
    expect(retryDelayMs(policy, { failures: 2, retryAfterMs: null }, 0)).toBe(24_000);
    expect(retryDelayMs(policy, { failures: 2, retryAfterMs: null }, 0.999_999)).toBe(36_000);
  });

  test('is made longer by Retry-After, up to an hour, and never shorter', () => {
    expect(retryDelayMs(policy, { failures: 1, retryAfterMs: 90_000 }, middle)).toBe(90_000);
    expect(retryDelayMs(policy, { failures: 1, retryAfterMs: 5 * HOUR_MS }, middle)).toBe(HOUR_MS);
    expect(retryDelayMs(policy, { failures: 3, retryAfterMs: 1_000 }, middle)).toBe(2 * MINUTE_MS);
  });

  test('is never longer than the longest that is told', () => {
    const longest = longestDelayMs(policy);
    expect(retryDelayMs(policy, { failures: 9, retryAfterMs: 9 * HOUR_MS }, 0.999_999)).toBeLessThanOrEqual(longest);
  });
});
