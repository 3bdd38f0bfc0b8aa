import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { dueIn, ClockSafeNextAttempt } from '../../src/delivery/next-attempt.ts';
import { TEST_RETRY_POLICY } from './fixtures/retry-policy.ts';

const MINUTE_MS = 60_000;
const policy = { ...TEST_RETRY_POLICY, retryDelaysMs: [5_000, 60 * MINUTE_MS] };

describe('the next attempt', () => {
  afterEach(() => void jest.restoreAllMocks());

  const inTenMinutes = (): Date => new Date(Date.now() + 10 * MINUTE_MS);
  const turnClock = (ms: number): void => {
    const now = Date.now();
    jest.spyOn(Date, 'now').mockReturnValue(now + ms);
  };

  test('is due at once when its time has passed', () => {
    expect(new ClockSafeNextAttempt(new Date(Date.now() - 1), policy).waitMs()).toBe(0);
  });

  test('is waited for as long as it was set for', () => {
    const waitMs = new ClockSafeNextAttempt(inTenMinutes(), policy).waitMs();
    expect(waitMs).toBeGreaterThan(9 * MINUTE_MS);
    expect(waitMs).toBeLessThanOrEqual(10 * MINUTE_MS);
  });

  test('is not waited for any longer when the clock is set back meanwhile', () => {
    const next = new ClockSafeNextAttempt(inTenMinutes(), policy);
    turnClock(-30 * MINUTE_MS);
    expect(next.waitMs()).toBeLessThanOrEqual(10 * MINUTE_MS);
  });

  test('is not waited for any longer when the clock is set back before anybody waits for it', () => {
    const at = dueIn(10 * MINUTE_MS);
    turnClock(-30 * MINUTE_MS);
    const waitMs = new ClockSafeNextAttempt(at, policy).waitMs();
    expect(waitMs).toBeGreaterThan(9 * MINUTE_MS);
    expect(waitMs).toBeLessThanOrEqual(10 * MINUTE_MS);
  });

  test('is due as soon as the wall clock says so, which goes on while a machine sleeps', () => {
    const next = new ClockSafeNextAttempt(inTenMinutes(), policy);
    turnClock(11 * MINUTE_MS);
    expect(next.waitMs()).toBe(0);
  });

  test('is due at once when it was written by a clock that has been set back since by more than any wait', () => {
    const at = inTenMinutes();
    turnClock(-2 * (60 * MINUTE_MS));
    expect(new ClockSafeNextAttempt(at, policy).waitMs()).toBe(0);
  });
});
