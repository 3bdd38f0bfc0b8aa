import { describe, expect, test } from '@jest/globals';
import { crossoverInterval, isNarrow, judge, ratioInterval, studentT975 } from '../../bench/compare/statistics.ts';

describe("Student's t at 97.5 %", () => {
  test.each([
    [1, 12.706],
    [4, 2.776],
    [10, 2.228],
    [30, 2.042],
    [40, 2.021],
    [60, 2],
    [120, 1.98],
  ])('of %d degrees of freedom is %d, as tables print it', (degrees, t) => {
    expect(studentT975(degrees)).toBeCloseTo(t, 6);
  });

  test('between two listed degrees goes by the reciprocal: 1/48 is half way from 1/40 to 1/60', () => {
    expect(studentT975(48)).toBeCloseTo((2.021 + 2) / 2, 6);
  });

  test('comes down to that of the normal distribution', () => {
    expect(studentT975(1_000_000)).toBeCloseTo(1.96, 3);
  });

  test.each([0, -1, 1.5, Number.NaN])('has no value for %d degrees', (degrees) => {
    expect(() => studentT975(degrees)).toThrow(RangeError);
  });
});

describe('the interval of a ratio', () => {
  test('by hand: ratios e^0.01 and e^0.03 have the mean 0.02, s/√n = 0.01, and t = 12.706', () => {
    const pairs = [
      { a: 100, b: 100 * Math.exp(0.01) },
      { a: 200, b: 200 * Math.exp(0.03) },
    ];
    const interval = ratioInterval(pairs)!;
    expect(interval.ratio).toBeCloseTo(1.020201, 6); // e^0.02
    expect(interval.low).toBeCloseTo(0.898461, 4); // e^(0.02 − 0.12706)
    expect(interval.high).toBeCloseTo(1.158433, 4); // e^(0.02 + 0.12706)
    expect(interval.pairs).toBe(2);
  });

  test('by hand: logarithms −2, −1, 0, 1, 2 in percent: s² = 2.5, s/√n = 0.7071, half of it 1.963', () => {
    const pairs = [-2, -1, 0, 1, 2].map((percent) => ({ a: 1, b: Math.exp(percent / 100) }));
    const { ratio, low, high } = ratioInterval(pairs)!;
    expect(ratio).toBeCloseTo(1, 12);
    expect(Math.log(high)).toBeCloseTo(0.01963, 5);
    expect(Math.log(low)).toBeCloseTo(-0.01963, 5);
  });

  test('of A to B is the reciprocal of B to A', () => {
    const pairs = [
      { a: 10, b: 11 },
      { a: 10, b: 12 },
      { a: 12, b: 11 },
    ];
    const there = ratioInterval(pairs)!;
    const back = ratioInterval(pairs.map(({ a, b }) => ({ a: b, b: a })))!;
    expect(back.ratio).toBeCloseTo(1 / there.ratio, 12);
    expect(back.low).toBeCloseTo(1 / there.high, 12);
  });

  test('is not known of one pair', () => {
    expect(ratioInterval([{ a: 1, b: 2 }])).toBeNull();
  });
});

describe('the interval of pairs that begin with A and with B in turn', () => {
  test('by hand: the second server is 10 % slower, the rest is −1, 1, 1, −1 percent: s² = 2 with 2 degrees, s/√n = 0.7071', () => {
    const logs = [-11, 11, -9, 9].map((percent) => percent / 100);
    const { ratio, low, high, second, pairs } = crossoverInterval(logs.map((log) => ({ a: 1, b: Math.exp(log) })))!;
    expect(ratio).toBeCloseTo(1, 12);
    expect(Math.log(second)).toBeCloseTo(-0.1, 12);
    expect(Math.log(high)).toBeCloseTo(4.303 * 0.007071, 5);
    expect(Math.log(low)).toBeCloseTo(-4.303 * 0.007071, 5);
    expect(pairs).toBe(4);
  });

  test('has the middle between both groups, also where one has a pair more', () => {
    const logs = [-0.08, 0.12, -0.08, 0.12, -0.08];
    const { ratio, second } = crossoverInterval(logs.map((log) => ({ a: 5, b: 5 * Math.exp(log) })))!;
    expect(Math.log(ratio)).toBeCloseTo(0.02, 12);
    expect(Math.log(second)).toBeCloseTo(-0.1, 12);
  });

  test('is not known of three pairs', () => {
    expect(crossoverInterval([1, 2, 3].map((b) => ({ a: 1, b })))).toBeNull();
  });
});

describe('a bar', () => {
  const at = (ratio: number, half: number, pairs = 8) => ({
    ratio,
    low: ratio * (1 - half),
    high: ratio * (1 + half),
    pairs,
  });

  test('is held by a narrow interval whose middle is not below it', () => {
    expect(judge(at(0.98, 0.015), 0.98)).toBe('held');
    expect(judge(at(1.1, 0.001), 0.98)).toBe('held');
  });

  test('is missed by a narrow interval whose middle is below it, although the bar is within', () => {
    expect(judge(at(0.979, 0.01), 0.98)).toBe('missed');
  });

  test('is undecided while the interval is wider than ±1.5 %, wherever its middle is', () => {
    expect(judge(at(1.5, 0.016), 0.98)).toBe('undecided');
    expect(judge(at(0.5, 0.016), 0.98)).toBe('undecided');
    expect(judge(null, 0.98)).toBe('undecided');
  });

  test('is undecided while either end alone is too far away', () => {
    expect(judge({ ratio: 1, low: 0.99, high: 1.0151, pairs: 8 }, 0.98)).toBe('undecided');
    expect(judge({ ratio: 1, low: 0.9849, high: 1.01, pairs: 8 }, 0.98)).toBe('undecided');
  });

  test('is undecided for fewer than five pairs, whose spread may be small by chance', () => {
    expect(isNarrow(at(1, 0.001, 4))).toBe(false);
    expect(isNarrow(at(1, 0.001, 5))).toBe(true);
  });
});
