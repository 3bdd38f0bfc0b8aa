import { describe, expect, test } from '@jest/globals';
import { parseRetryAfter } from '../../src/outbound/retry-after.ts';

const NOW = Date.UTC(1994, 10, 6, 8, 49, 7);

describe('Retry-After', () => {
  test.each([
    ['120', 120_000],
    ['0', 0],
    [' 7 ', 7_000],
    ['1.5', 1_500],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 30_000],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 30_000],
    ['Sun Nov  6 08:49:37 1994', 30_000],
    ['Sun, 06 Nov 1994 08:00:00 GMT', 0],
  ])('"%s" is %d ms', (value, expected) => {
    expect(parseRetryAfter(value, NOW)).toBe(expected);
  });

  test.each(['', '-1', 'soon', 'a 1', '1e9', '1, 2', 'Sun, 99 Nov 1994 08:49:37 GMT', '9'.repeat(40)])(
    '"%s" is not read',
    (value) => {
      expect(parseRetryAfter(value, NOW)).toBeNull();
    },
  );

  test('of several the first counts, and none is none', () => {
    expect(parseRetryAfter(['3', '4'], NOW)).toBe(3_000);
    expect(parseRetryAfter([], NOW)).toBeNull();
    expect(parseRetryAfter(undefined, NOW)).toBeNull();
  });
});
