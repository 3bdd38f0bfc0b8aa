import { describe, expect, test } from '@jest/globals';
import { formatWithin, parseExpectationKey, parseWithin } from '../../src/model/expectation.ts';

describe('how long a group waits', () => {
  test.each([
    ['26h', 93_600],
    ['1m', 60],
    ['60s', 60],
    ['366d', 31_622_400],
    [' 1.5 hours ', 5_400],
    ['2 weeks', 1_209_600],
  ])('%j is a duration', (text, seconds) => expect(parseWithin(text)).toBe(seconds));

  test.each(['', '26', 'h', '59s', '59.4s', '367d', '-1h', '1e3h', '1 h 30 m', '26H', '26hours!', 'h'.repeat(10_000)])(
    '%j is none',
    (text) => expect(parseWithin(text)).toBeNull(),
  );

  test.each([
    [93_600, '26h'],
    [86_400, '1d'],
    [5_400, '90m'],
    [61, '61s'],
  ])('%d s are shown as %s', (seconds, text) => {
    expect(formatWithin(seconds)).toBe(text);
    expect(parseWithin(text)).toBe(seconds);
  });
});

describe('a key', () => {
  test('is taken without the white space around it', () =>
    expect(parseExpectationKey(' nightly backup\n')).toBe('nightly backup'));

  test.each(['', ' ', 'a\nb', 'a\u0000b', 'a\u202eb', 'a\u200bb', 'k'.repeat(201)])('cannot be %j', (text) =>
    expect(parseExpectationKey(text)).toBeNull(),
  );
});
