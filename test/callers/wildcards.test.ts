import { expect, test } from '@jest/globals';
import { matchesAnyPattern, matchesPattern } from '../../src/callers/core/wildcards.ts';

test.each([
  ['main', 'main', true],
  ['main', 'main2', false],
  ['release/*', 'release/1.0', true],
  ['release/*', 'release', false],
  ['*', '', true],
  ['*-fix', 'late-fix', true],
  ['a*a', 'a', false],
  ['a*b*c', 'a-b-b-c', true],
  ['a*b*c', 'a-c-b', false],
  ['a*bc*c', 'abc', false],
])('%s against %s: %s', (pattern, value, expected) => expect(matchesPattern(pattern, value)).toBe(expected));

test('a list allows what one of its patterns is like, and an empty one allows all', () => {
  expect(matchesAnyPattern('push, issues.*', 'issues', 'issues.opened')).toBe(true);
  expect(matchesAnyPattern('push, issues.*', 'issues', 'issues')).toBe(false);
  expect(matchesAnyPattern(null, 'issues')).toBe(true);
  expect(matchesAnyPattern(' , ', 'issues')).toBe(true);
});

test('many stars and a long value take no longer than one pass', () => {
  const started = performance.now();
  expect(matchesPattern('*a'.repeat(2_000) + '*b', 'a'.repeat(500))).toBe(false);
  expect(matchesPattern('*'.repeat(2_000), 'a'.repeat(100_000))).toBe(false);
  expect(performance.now() - started).toBeLessThan(1_000);
});
