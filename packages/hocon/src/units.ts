import type { Value } from './value.ts';

/** A number, then letters that name a unit: the "units format" of the HOCON specification. */
const NUMBER_WITH_UNIT = /^([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(\p{L}*)$/u;

const MS_PER_DURATION_UNIT: ReadonlyMap<string, number> = new Map(
  (
    [
      ['ns nano nanos nanosecond nanoseconds', 1e-6],
      ['us micro micros microsecond microseconds', 1e-3],
      ['ms milli millis millisecond milliseconds', 1],
      ['s second seconds', 1e3],
      ['m minute minutes', 60e3],
      ['h hour hours', 3600e3],
      ['d day days', 86_400e3],
      ['w week weeks', 604_800e3],
    ] as const
  ).flatMap(([names, factor]) => names.split(' ').map((name) => [name, factor])),
);

const BYTES_PER_SIZE_UNIT: ReadonlyMap<string, number> = new Map([
  ...['B', 'b', 'byte', 'bytes'].map((name): [string, number] => [name, 1]),
  ...['kilo', 'mega', 'giga', 'tera', 'peta', 'exa', 'zetta', 'yotta'].flatMap(decimalUnitFactors),
  ...['kibi', 'mebi', 'gibi', 'tebi', 'pebi', 'exbi', 'zebi', 'yobi'].flatMap(binaryUnitFactors),
]);

/**
 * The milliseconds of a duration, rounded to nanoseconds; null if the value is not a duration. A number without a unit
 * counts milliseconds. Units are those of the HOCON specification (case-sensitive), and weeks. The result may be
 * negative.
 */
export function durationMs(value: Value): number | null {
  const ms = parseWithUnit(value, MS_PER_DURATION_UNIT);
  // Rounds to nanoseconds: without this, 2.3 s would be 2299.9999999999995 ms in binary floating point.
  return ms === null ? null : Math.round(ms * 1e6) / 1e6;
}

/**
 * The size in whole bytes; null if the value is not a size. A number without a unit counts bytes. By the HOCON
 * specification, `kB` is 1000 bytes; `K`, `k`, `Ki` and `KiB` are 1024. `KB` means `kB`. The result may be negative.
 */
export function sizeBytes(value: Value): number | null {
  const bytes = parseWithUnit(value, BYTES_PER_SIZE_UNIT);
  return bytes === null ? null : Math.round(bytes);
}

function parseWithUnit(value: Value, units: ReadonlyMap<string, number>): number | null {
  if (value.kind === 'number') return value.number;
  const match = value.kind === 'string' ? NUMBER_WITH_UNIT.exec(value.text.trim()) : null;
  if (match === null) return null;
  const factor = match[2] === '' ? 1 : units.get(match[2] ?? '');
  const result = factor === undefined ? Number.NaN : Number(match[1]) * factor;
  return Number.isFinite(result) ? result : null;
}

function decimalUnitFactors(prefix: string, index: number): [string, number][] {
  const initial = prefix.charAt(0).toUpperCase();
  const names = [`${initial}B`, `${prefix}byte`, `${prefix}bytes`, ...(index === 0 ? ['kB'] : [])];
  return names.map((name) => [name, 1000 ** (index + 1)]);
}

function binaryUnitFactors(prefix: string, index: number): [string, number][] {
  const initial = prefix.charAt(0).toUpperCase();
  const names = [initial, initial.toLowerCase(), `${initial}i`, `${initial}iB`, `${prefix}byte`, `${prefix}bytes`];
  return names.map((name) => [name, 1024 ** (index + 1)]);
}
