import { describe, expect, test } from '@jest/globals';
import { durationMs, sizeBytes, type Value } from '../src/index.ts';
import { within } from '../../../test/run/machine-speed.ts';

const origin = { file: 't', line: 1, column: 1 };
const text = (text: string): Value => ({ kind: 'string', origin, text });
const number = (number: number): Value => ({ kind: 'number', origin, text: String(number), number });

describe('A duration', () => {
  test.each([
    ['1 ns', 1e-6],
    ['10 nanos', 1e-5],
    ['1nanosecond', 1e-6],
    ['5us', 0.005],
    ['5 micros', 0.005],
    ['7ms', 7],
    ['7 millis', 7],
    ['7 milliseconds', 7],
    ['2.3s', 2300],
    ['.5 second', 500],
    ['1e3 seconds', 1_000_000],
    ['3m', 180_000],
    ['3 minutes', 180_000],
    ['2h', 7_200_000],
    ['1 hour', 3_600_000],
    ['1d', 86_400_000],
    ['2 days', 172_800_000],
    ['1w', 604_800_000],
    ['2 weeks', 1_209_600_000],
    [' \t-5 s\u00a0', -5000],
    ['250', 250],
    ['0', 0],
  ])('%j is read in its unit', (written, ms) => {
    expect(durationMs(text(written))).toBe(ms);
  });

  test.each([
    '',
    's',
    '5 S',
    '5 MS',
    '5 parsecs',
    '1 2',
    '5s 3',
    '1,5s',
    '0x10',
    'Infinity',
    '1e999',
    '--5',
    '5 s s',
    '__proto__',
    '1 constructor',
  ])('%j is none', (written) => {
    expect(durationMs(text(written))).toBeNull();
  });

  test('without a unit counts milliseconds', () => {
    expect(durationMs(number(1500))).toBe(1500);
  });

  test('is neither a boolean, null, an array nor an object', () => {
    expect(durationMs({ kind: 'boolean', origin, value: true })).toBeNull();
    expect(durationMs({ kind: 'null', origin })).toBeNull();
    expect(durationMs({ kind: 'array', origin, items: [] })).toBeNull();
    expect(durationMs({ kind: 'object', origin, entries: new Map() })).toBeNull();
  });
});

test('A long text that is no measure is told quickly', () => {
  const started = performance.now();
  for (const filler of [' ', '1', '.', 'e', 's', '1e', '1 ']) {
    expect(durationMs(text(`1${filler.repeat(200_000)}!`))).toBeNull();
    expect(durationMs(text(`${filler.repeat(200_000)}!`))).toBeNull();
  }
  expect(performance.now() - started).toBeLessThan(within(2000));
});

describe('A size', () => {
  test.each([
    ['1', 1],
    ['1B', 1],
    ['1 b', 1],
    ['2 bytes', 2],
    ['1kB', 1000],
    ['1KB', 1000],
    ['1 kilobyte', 1000],
    ['1K', 1024],
    ['1k', 1024],
    ['1Ki', 1024],
    ['1KiB', 1024],
    ['3 kibibytes', 3072],
    ['2MB', 2e6],
    ['2 megabytes', 2e6],
    ['2M', 2_097_152],
    ['2m', 2_097_152],
    ['2MiB', 2_097_152],
    ['0.5G', 536_870_912],
    ['1GB', 1e9],
    ['1g', 2 ** 30],
    ['1T', 2 ** 40],
    ['1 TB', 1e12],
    ['1 pebibyte', 2 ** 50],
    ['1E', 2 ** 60],
    ['1e3E', 1000 * 2 ** 60],
    ['1ZB', 1e21],
    ['1Yi', 2 ** 80],
    ['2.3kB', 2300],
    ['1.5', 2],
  ])('%j is read in its unit', (written, bytes) => {
    expect(sizeBytes(text(written))).toBe(bytes);
  });

  test.each(['', 'K', '1 kb', '1 Kb', '1 kib', '1 octets', '1 K B', 'NaN'])('%j is none', (written) => {
    expect(sizeBytes(text(written))).toBeNull();
  });

  test('without a unit counts bytes', () => {
    expect(sizeBytes(number(4096))).toBe(4096);
  });
});
