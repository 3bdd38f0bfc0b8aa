import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type { FaultResult } from '../../faults/fault.ts';
import { mergedRows, notesOf, pageOf, rowOf, summaryOf, tableOf, type ReportRow } from '../../faults/report.ts';
import { readRows } from '../../faults/stored-report.ts';

const survived: FaultResult = {
  name: 'kill',
  title: 'kill -9 of the server',
  runs: 3,
  messages: 1_200,
  deliveries: 2_400,
  lost: 0,
  outOfOrder: 0,
  duplicates: 9,
  worstDuplicates: 4,
  allowedDuplicates: 8,
  changesWithTwoTexts: 2,
  recoveries: [
    { firstMs: 700, allMs: 720, longestPauseMs: 40, totalMs: 2_000 },
    { firstMs: 1_500, allMs: 2_000, longestPauseMs: 1_200, totalMs: 3_000 },
    { firstMs: 900, allMs: 905, longestPauseMs: 600, totalMs: 2_000 },
  ],
  seconds: 9,
  remark: 'with a remark',
  violations: [],
  notRun: null,
};
const failed: FaultResult = { ...survived, title: 'hang', lost: 1, remark: '', violations: ['1 messages were lost'] };
const notRun: FaultResult = { ...survived, title: 'clock', remark: '', notRun: 'faketime is not installed' };
const results = [survived, failed, notRun];

const machine = {
  cores: 2,
  memoryGiB: 24,
  kernel: 'Linux 6.1',
  node: '24.21.0',
  postgresql: '18.4',
  commit: 'abc123',
};

const rowsOf = (found: readonly FaultResult[]): ReportRow[] =>
  found.map((result) => rowOf(result, { startedAt: new Date(0), machine }));

const cells = (line: string): string[] =>
  line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());

describe('the fault report', () => {
  test('has a row for each fault, with the median and the worst of its runs', () => {
    const [head, rule, ...rows] = tableOf(results).split('\n');
    expect(new Set([head, rule, ...rows].map((line) => line!.length)).size).toBe(1);
    expect(cells(rows[0]!)).toEqual([
      'kill -9 of the server',
      '3',
      '1200',
      '0',
      '0',
      '2',
      '9',
      '4 (8)',
      '0.60, 1.20 s',
      '0.90, 1.50 s',
      '0.91, 2.00 s',
    ]);
    expect(rows).toHaveLength(3);
  });

  test('shows what was not run as that, and never as survived', () => {
    const row = tableOf(results).split('\n').at(-1)!;
    expect(cells(row)).toEqual(['clock', 'not run', ...Array.from({ length: 9 }, () => '')]);
    expect(notesOf(results)).toEqual([
      'kill -9 of the server: with a remark',
      'hang: FAILED: 1 messages were lost',
      'clock: not run. faketime is not installed',
    ]);
    expect(summaryOf(results)).toBe('1 faults survived, 1 failed, 1 not run');
  });

  test('names the machine and the commit', () => {
    const page = pageOf(rowsOf(results), ['kill']);
    for (const fact of ['1970-01-01', '2 cores, 24 GiB', 'Linux 6.1', 'PostgreSQL 18.4', '| abc123 |']) {
      expect(page).toContain(fact);
    }
    expect(page).toContain('1 faults survived, 1 failed, 1 not run');
  });
});

describe('the rows of several runs', () => {
  test('keep the newest of each fault, in the order of the faults, without those that are gone', () => {
    const older = rowsOf([{ ...survived, name: 'hang' }, { ...survived, name: 'gone' }, survived]);
    const newer = rowsOf([{ ...survived, runs: 7 }]);
    const merged = mergedRows(older, newer, ['kill', 'hang', 'slow']);
    expect(merged.map(({ name, cells }) => [name, cells[1]])).toEqual([
      ['kill', '7'],
      ['hang', '3'],
    ]);
    expect(pageOf(merged, ['kill', 'hang', 'slow'])).toContain('1 never run for this report (slow)');
  });

  test('cannot be made of anything but results of a whole run', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'klatch-report-'));
    const file = join(folder, 'results.json');
    const stored = { startedAt: new Date(0), quick: false, machine, results: [survived] };
    await writeFile(file, JSON.stringify(stored));
    expect(await readRows(file)).toEqual(rowsOf([survived]));
    await writeFile(file, JSON.stringify({ ...stored, quick: true }));
    await expect(readRows(file)).rejects.toThrow('QUICK=1');
    await writeFile(file, '{}');
    await expect(readRows(file)).rejects.toThrow('holds no results');
    await rm(folder, { recursive: true });
  });
});
