import { describe, expect, test } from '@jest/globals';
import type { FaultResult } from '../../faults/fault.ts';
import { allFaults } from '../../faults/all.ts';
import { mergeReports } from '../../faults/merge-reports.ts';
import { notesOf, pageOf, summaryOf, tableOf, type Report } from '../../faults/report.ts';

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
  conflictingRevs: 2,
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
    const page = pageOf({ startedAt: new Date(0), seconds: 900, runCount: 1, quick: false, machine, results });
    for (const fact of ['1970-01-01, 15 minutes', '2 cores, 24 GiB', 'Linux 6.1', 'PostgreSQL 18.4', 'abc123']) {
      expect(page).toContain(fact);
    }
    expect(page).toContain(tableOf(results));
  });
});

describe('the results of several runs', () => {
  const rows = allFaults.map(({ name, title }): FaultResult => ({ ...survived, name, title }));
  const part = (from: number, to?: number): Report => ({
    startedAt: new Date(86_400_000 * from),
    seconds: 600,
    runCount: 1,
    quick: false,
    machine,
    results: rows.slice(from, to),
  });

  test('make one page, in the order of the faults', () => {
    const merged = mergeReports([part(3), part(0, 3)]);
    expect(merged.results).toEqual(rows);
    expect(pageOf(merged)).toContain('- Date: 1970-01-01, 20 minutes in 2 runs\n');
  });

  test('make none where a fault is missing or there twice, or where commits or thoroughness differ', () => {
    const last = rows.at(-1)!.name;
    expect(() => mergeReports([])).toThrow('OUT=');
    expect(() => mergeReports([part(0, -1)])).toThrow(`0 of the files have results of ${last}`);
    expect(() => mergeReports([part(0), part(rows.length - 1)])).toThrow(`2 of the files have results of ${last}`);
    const other = { ...part(3), machine: { ...machine, commit: 'def456' } };
    expect(() => mergeReports([part(0, 3), other])).toThrow('different commits');
    expect(() => mergeReports([part(0, 3), { ...part(3), quick: true }])).toThrow('QUICK=1');
  });
});
