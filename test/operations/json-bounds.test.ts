import { expect, test } from '@jest/globals';
import { boundJson } from '../../src/operations/json-bounds.ts';

const PAD = ' '.repeat(5_000);
const nested = (depth: number): string => `${PAD}${'['.repeat(depth)}${']'.repeat(depth)}`;
const listed = (count: number): string => `[${Array.from({ length: count }, () => '1').join()}]`;

test.each([
  ['a text that is short, whatever it is', '['.repeat(1_024)],
  ['32 levels', nested(32)],
  ['many objects beside each other', `${PAD}[${Array.from({ length: 8_000 }, () => '{"a":[]}').join()}]`],
  ['25,000 values', listed(25_000)],
  ['brackets and commas in a string', `${PAD}["${'[{,'.repeat(50_000)}"]`],
  ['a string that ends with a backslash', `${PAD}["\\\\",${'"[{,\\""'.repeat(1)}]`],
  ['a string with escaped quotes', `${PAD}["${'\\"['.repeat(50_000)}"]`],
  ['a string without an end', `${PAD}["${'['.repeat(50_000)}`],
])('%s may be parsed', (_, text) => {
  boundJson(text);
});

test.each([
  ['33 levels', nested(33), 'input: is nested too deep'],
  ['33 levels of objects', `${PAD}${'{"a":'.repeat(33)}1`, 'input: is nested too deep'],
  ['a level behind a string', `${PAD}["\\\\",${'['.repeat(40)}`, 'input: is nested too deep'],
  ['too many values', listed(25_001), 'input: holds more than 25000 values'],
  ['too many keys', `{${Array.from({ length: 25_001 }, (_, i) => `"k${i}":1`).join()}}`, 'input: holds more than'],
])('%s may not', (_, text, sentence) => {
  expect(() => boundJson(text)).toThrow(sentence);
});

test('a text of 1 MiB that is nothing but brackets is refused at once', () => {
  const text = '['.repeat(1024 * 1024);
  const started = performance.now();
  expect(() => boundJson(text)).toThrow('input: is nested too deep');
  // It stops at the 33rd of them; what looked at the rest for each would take minutes.
  expect(performance.now() - started).toBeLessThan(2_000);
});
