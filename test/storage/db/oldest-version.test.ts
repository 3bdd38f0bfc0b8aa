import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';

const storage = join(import.meta.dirname, '../../../src/storage');

/** Features that are newer than PostgreSQL 11. No test can start that version, the oldest that Klatch supports. */
const NEWER: readonly (readonly [version: number, words: RegExp])[] = [
  [12, /\bas (?:not )?materialized\b/],
  [12, /\bgenerated always as \(/],
  [12, /\bjsonb?_path_\w+\(/],
  [13, /\bgen_random_uuid\(/],
  [13, /\bwith ties\b/],
  [14, /\b(?:bit_count|date_bin|string_to_table|trim_array|unistr|range_agg)\(/],
  [15, /\bmerge into\b/],
  [15, /\bnulls not distinct\b/],
  [15, /\bregexp_(?:count|instr|like|substr)\(/],
  [16, /\b(?:any_value|array_sample|array_shuffle)\(/],
  [17, /\bjson_(?:exists|query|table|value)\(/],
  [18, /\buuidv[47]\(/],
];

/** Finds each use of a newer feature, as `file: PostgreSQL version`. */
function newerIn(file: string, text: string): string[] {
  return NEWER.filter(([, words]) => words.test(text.toLowerCase())).map(
    ([version]) => `${file}: PostgreSQL ${version}`,
  );
}

test('no statement says what PostgreSQL 11 does not know', () => {
  const files = readdirSync(storage, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.(?:ts|sql)$/.test(name),
  );
  expect(files.length).toBeGreaterThan(50);
  expect(files.flatMap((name) => newerIn(name, readFileSync(join(storage, name), 'utf8')))).toEqual([]);
});

test('what such a statement would say is seen', () => {
  expect(newerIn('a.ts', 'with a AS MATERIALIZED (select gen_random_uuid())')).toEqual([
    'a.ts: PostgreSQL 12',
    'a.ts: PostgreSQL 13',
  ]);
  expect(newerIn('a.sql', 'id bigint generated always as identity')).toEqual([]);
});
