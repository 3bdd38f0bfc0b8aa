import { expect, test } from '@jest/globals';
import { jsonLimitViolation } from '../../../src/operations/core/json-limits.ts';
import { parseJson } from '../../../src/operations/core/parse-json.ts';

const LIMITS = { maxDepth: 32, maxValues: 25_000, maxShapes: 1_000 };
const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const listed = (count: number): string => `[${Array.from({ length: count }, () => '1').join()}]`;
const keyed = (count: number, name = (n: number): string => `k${n}`): string =>
  `{${Array.from({ length: count }, (_, n) => `"${name(n)}":1`).join()}}`;
const objects = (count: number, object: (n: number) => string): string =>
  `[${Array.from({ length: count }, (_, n) => object(n)).join()}]`;

test.each([
  ['32 levels', nested(32)],
  ['many objects beside each other', objects(8_000, () => '{"a":[]}')],
  ['25,000 values', listed(25_000)],
  ['brackets and commas in a string', `["${'[{,'.repeat(50_000)}"]`],
  ['a string that ends with a backslash', '["\\\\","[{,\\""]'],
  ['a string with escaped quotes', `["${'\\"['.repeat(50_000)}"]`],
  ['a string without an end', `["${'['.repeat(50_000)}`],
  ['1,000 keys', keyed(1_000)],
  ['keys as often as their objects are', objects(6_000, () => '{"a":1,"b":{"c":2}}')],
  ['20,000 keys that are numbers', keyed(20_000, String)],
  ['more ends than beginnings', ']'.repeat(100)],
])('%s may be parsed', (_, text) => {
  expect(jsonLimitViolation(text, LIMITS)).toBe(null);
});

test.each([
  ['33 levels', nested(33), 'is nested deeper than 32 levels'],
  ['33 levels of objects', `${'{"a":'.repeat(33)}1`, 'is nested deeper than 32 levels'],
  ['a level behind a string', `["\\\\",${'['.repeat(40)}`, 'is nested deeper than 32 levels'],
  ['too many values', listed(25_001), 'holds more than 25000 values'],
  ['too many keys', keyed(1_001), 'holds more than 1000 different keys'],
  ['a key of its own in each object', objects(1_001, (n) => `{"k${n}":1}`), 'holds more than 1000 different keys'],
  [
    'few keys in an order of its own in each object',
    objects(1_600, (n) => `{"a${n % 40}":1,"b${Math.floor(n / 40)}":1}`),
    'holds more than 1000 different keys',
  ],
  ['keys that only look like numbers', keyed(1_001, (n) => `0${n}`), 'holds more than 1000 different keys'],
  ['keys behind strings that look like their ends', `{"a":"\\"}","b":${keyed(1_001)}}`, 'holds more than 1000'],
])('%s may not', (_, text, sentence) => {
  expect(jsonLimitViolation(text, LIMITS)).toContain(sentence);
});

test('a limit holds for short texts as well', () => {
  expect(jsonLimitViolation('[[[[]]]]', { maxDepth: 3, maxValues: 50, maxShapes: 50 })).toBe(
    'is nested deeper than 3 levels',
  );
  expect(jsonLimitViolation('[1,2,3]', { maxDepth: 3, maxValues: 2, maxShapes: 50 })).toBe('holds more than 2 values');
  expect(jsonLimitViolation('{"a":{"b":1}}', { maxDepth: 3, maxValues: 5, maxShapes: 1 })).toBe(
    'holds more than 1 different keys',
  );
});

test('a text past its limits is refused before it is parsed', () => {
  // The text is not valid JSON, but the error is about its depth: the limits apply before the parser.
  expect(() => parseJson('['.repeat(1024 * 1024), LIMITS)).toThrow('input: is nested deeper than 32 levels');
});
