import { describe, expect, test } from '@jest/globals';
import { DURATION_BOUNDS_S, Histogram } from '../src/histogram.ts';

describe('a histogram', () => {
  test('counts what is not above each bound, and the rest in no bound', () => {
    const histogram = new Histogram([1, 10]);
    for (const value of [0, 1, 1.5, 10, 10.1, 500]) histogram.observe(value);
    expect(histogram.read()).toEqual({ bounds: [1, 10], cumulative: [2, 4], count: 6, sum: 522.6 });
  });

  test('that has counted nothing is all zeros', () => {
    expect(new Histogram([1]).read()).toEqual({ bounds: [1], cumulative: [0], count: 0, sum: 0 });
  });

  test('gives counts that later observations do not change', () => {
    const histogram = new Histogram([1]);
    const before = histogram.read();
    histogram.observe(1);
    expect(before).toEqual({ bounds: [1], cumulative: [0], count: 0, sum: 0 });
  });

  test('has bounds of durations that rise', () => {
    expect([...DURATION_BOUNDS_S].sort((a, b) => a - b)).toEqual(DURATION_BOUNDS_S);
  });
});
