import { describe, expect, test } from '@jest/globals';
import { DURATION_BOUNDS_MS, durationQuantileBoundMs } from '../../src/model/hook-stats.ts';

/** The counters of durations, with these counts at these indexes and 0 elsewhere. */
const counts = (...given: [index: number, count: number][]): number[] => {
  const all = Array.from({ length: DURATION_BOUNDS_MS.length + 1 }, () => 0);
  for (const [index, count] of given) all[index] = count;
  return all;
};

describe('durationQuantileBoundMs()', () => {
  test.each<[string, number[], number, number | null]>([
    ['no request', counts(), 0.5, null],
    ['one request', counts([2, 1]), 0.95, 25],
    ['half of them in the first count', counts([0, 5], [4, 5]), 0.5, 5],
    ['less than half of them in the first count', counts([0, 4], [4, 5]), 0.5, 100],
    ['five of a hundred that are slow', counts([0, 95], [9, 5]), 0.95, 5],
    ['six of a hundred that are slow', counts([0, 94], [9, 6]), 0.95, 5_000],
    ['what took longer than the last bound', counts([11, 1]), 0.5, null],
  ])('of %s', (_, given, share, expected) => {
    expect(durationQuantileBoundMs(given, share)).toBe(expected);
  });
});
