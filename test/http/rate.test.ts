import { describe, expect, test } from '@jest/globals';
import { RateLimiter } from '../../src/operations/core/rate-limiter.ts';

/** Times at which sums of milliseconds round up and down. */
const times = Array.from({ length: 5_000 }, (_, i) => 1_000 + i * 0.1 + i / 3);

describe('a rate', () => {
  test('lets exactly its burst through at any one time', () => {
    for (const now of times) {
      const rate = new RateLimiter<number>({ perSecond: 3, burst: 2, maxKeys: 10 });
      expect([0, 1, 2].map(() => rate.reserve(1, 0, now))).toEqual([0, 0, null]);
    }
  });

  test('tells each further use when its turn is, and reserves nothing that would wait longer', () => {
    const rate = new RateLimiter<number>({ perSecond: 10, burst: 1, maxKeys: 10 });
    expect([0, 1, 2, 3].map(() => rate.reserve(1, 250, 0))).toEqual([0, 100, 200, null]);
    expect(rate.reserve(1, 250, 100)).toBe(200);
    expect(rate.reserve(2, 250, 100)).toBe(0);
  });

  test('lets the steady rate through for ever', () => {
    const rate = new RateLimiter<number>({ perSecond: 3, burst: 1, maxKeys: 10 });
    for (let i = 0; i < 10_000; i += 1) expect(rate.reserve(1, 0, (i * 1_000) / 3)).toBe(0);
  });

  test('forgets the keys used longest ago, which forgives them', () => {
    const rate = new RateLimiter<number>({ perSecond: 1, burst: 1, maxKeys: 2 });
    for (const key of [1, 2, 3]) rate.reserve(key, 0, 0);
    expect([3, 2, 1].map((key) => rate.reserve(key, 0, 0))).toEqual([null, null, 0]);
  });
});
