import { expect, test } from '@jest/globals';
import { missingTests } from '../scripts/compare-tests.ts';

test('a test that is not there any more is named, as often as it is missing', () => {
  expect(missingTests(['a', 'b', 'b', 'c'], ['b', 'a'])).toEqual(['b', 'c']);
});

test('a rename counts for its new name only, and a removal has to be listed', () => {
  expect(missingTests(['a', 'b', 'c'], ['x', 'c'], { a: 'x', b: null })).toEqual([]);
  expect(missingTests(['a'], ['a'], { a: 'x' })).toEqual(['a']);
});
