import { beforeEach, describe, expect, test } from '@jest/globals';
import type { AccountId } from '../../src/model/ids.ts';
import { AccountLimiter } from '../../src/push/account-limiter.ts';

const account = (n: number): AccountId => n as AccountId;
const ALICE = account(1);
const QUICK = { category: null, durationMs: 5 };
const TIMED_OUT = { category: 'timeout', durationMs: 10_000 };

let nowMs = 0;
let limit: AccountLimiter;
beforeEach(() => {
  nowMs = 1_000;
  limit = new AccountLimiter(80, () => nowMs);
});

/** Takes slots of the limiter for an account until it gets none. */
function takeAll(of: AccountId): ((ended: typeof TIMED_OUT | typeof QUICK) => void)[] {
  const taken = [];
  for (let release = limit.take(of); release !== null && taken.length < 100; release = limit.take(of)) {
    taken.push(release);
  }
  return taken;
}

/** Records that a push to the account timed out, which makes it a slow one. */
const makeSlow = (of: AccountId): void => limit.take(of)!(TIMED_OUT);

describe('one account', () => {
  test('has an eighth of the places, and gets one again when a push ends', () => {
    const taken = takeAll(ALICE);
    expect(taken).toHaveLength(10);
    expect(takeAll(account(2))).toHaveLength(10);
    taken[0]!(QUICK);
    expect(takeAll(ALICE)).toHaveLength(1);
  });

  test('has one place where there are few', () => {
    limit = new AccountLimiter(1);
    expect(takeAll(ALICE)).toHaveLength(1);
  });

  test('tries waiting pushes again one after the other, within a minute', () => {
    takeAll(ALICE);
    const waits = Array.from({ length: 5_000 }, () => limit.reserveRetryWaitMs(ALICE));
    expect(waits[0]).toBe(50);
    expect(waits[99]).toBe(2_500);
    expect(waits.at(-1)).toBe(60_000);
    // Other accounts do not wait for the slots that this account has.
    expect(limit.reserveRetryWaitMs(account(2))).toBe(50);
  });
});

describe('slow accounts', () => {
  test('have half of the places together', () => {
    const slow = Array.from({ length: 8 }, (_, n) => account(n + 1));
    for (const each of slow) makeSlow(each);
    const taken = slow.flatMap(takeAll);
    expect(taken).toHaveLength(40);
    expect(takeAll(account(100))).toHaveLength(10);
    taken[0]!(TIMED_OUT);
    expect(slow.flatMap(takeAll)).toHaveLength(1);
  });

  test('are quick again five minutes after the last slow push, whatever else was quick meanwhile', () => {
    const slow = Array.from({ length: 8 }, (_, n) => account(n + 1));
    for (const each of slow) makeSlow(each);
    for (const each of slow) limit.take(each)!(QUICK);
    nowMs += 5 * 60_000 - 1;
    const taken = slow.flatMap(takeAll);
    expect(taken).toHaveLength(40);
    // A slot that was acquired while the account was slow is also released as a slow one.
    nowMs += 2;
    for (const release of taken) release(QUICK);
    expect(slow.flatMap(takeAll)).toHaveLength(80);
  });

  test('wait as long as their pushes take, each for its turn among all of them', () => {
    makeSlow(ALICE);
    makeSlow(account(2));
    takeAll(ALICE);
    // A push of a slow account takes 10 s. The account has ten slots, and all slow accounts together have forty.
    expect([limit.reserveRetryWaitMs(ALICE), limit.reserveRetryWaitMs(ALICE)]).toEqual([1_000, 2_000]);
    expect(Array.from({ length: 8 }, () => limit.reserveRetryWaitMs(account(2))).at(-1)).toBe(8_000);
    for (let n = 3; n < 103; n += 1) makeSlow(account(n));
    for (let n = 3; n < 103; n += 1) limit.reserveRetryWaitMs(account(n));
    expect(limit.reserveRetryWaitMs(account(3))).toBe(250 * 111);
  });
});
