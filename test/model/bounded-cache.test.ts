import { expect, test } from '@jest/globals';
import { BoundedCache } from '../../src/model/bounded-cache.ts';

test('a bounded cache forgets what was used longest ago', () => {
  const cache = new BoundedCache<string, number>(2);
  cache.set('a', 1);
  cache.set('b', 2);
  cache.get('a');
  cache.set('c', 3);
  expect([...cache.keys()].sort()).toEqual(['a', 'c']);
});

test('a bounded cache forgets what is older than its ttl', () => {
  let nowMs = 1_000;
  const cache = new BoundedCache<string, number>(2, { ttl: 100, ttlResolution: 0, perf: { now: () => nowMs } });
  cache.set('a', 1);
  nowMs += 101;
  expect(cache.get('a')).toBeUndefined();
});

test('a bounded cache allocates nothing for entries that it does not hold', () => {
  // The cache allocates nothing for its capacity: an array of this size would not fit into memory.
  expect(new BoundedCache<string, number>(2 ** 40).size).toBe(0);
});
