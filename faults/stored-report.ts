import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { allFaults } from './all.ts';
import type { FaultResult } from './fault.ts';
import { mergedRows, pageOf, rowOf, type ReportRow, type RunFacts } from './report.ts';

const ROWS = join(import.meta.dirname, 'report.json');
const PAGE = join(import.meta.dirname, '../docs/fault-report.md');

/** The file that `OUT=` writes: the results of one run, for programs. */
export interface StoredRun extends RunFacts {
  readonly quick: boolean;
  readonly results: readonly FaultResult[];
}

/** Replaces the rows of these faults in the report, and writes its page. */
export async function updateReport(rows: readonly ReportRow[]): Promise<void> {
  const names = allFaults.map(({ name }) => name);
  const earlier = JSON.parse(await readFile(ROWS, 'utf8')) as ReportRow[];
  const merged = mergedRows(earlier, rows, names);
  await writeFile(ROWS, `${JSON.stringify(merged, null, 2)}\n`);
  await writeFile(PAGE, pageOf(merged, names));
}

/**
 * Reads the rows of a run from a file that `OUT=` wrote. Throws for any other file, and for the file of a run with
 * QUICK=1.
 */
export async function readRows(file: string): Promise<ReportRow[]> {
  const stored = JSON.parse(await readFile(file, 'utf8')) as Partial<Omit<StoredRun, 'startedAt'>> & {
    startedAt?: string;
  };
  const { startedAt, machine, results, quick } = stored;
  if (startedAt === undefined || machine === undefined || results === undefined) {
    throw new Error(`${file} holds no results of \`make faults OUT=${file}\``);
  }
  if (quick === true) throw new Error(`${file} holds results of a run with QUICK=1, which make no rows`);
  return results.map((result) => rowOf(result, { startedAt: new Date(startedAt), machine }));
}
