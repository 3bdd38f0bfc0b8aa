import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The fields of jest's `--json` output that are counted here. */
export interface JestResult {
  readonly success: boolean;
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly numRuntimeErrorTestSuites: number;
}

/** The numbers of tests in one run, or in several runs together. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export function countsOf(result: JestResult): Counts {
  return {
    passed: result.numPassedTests,
    // A suite that failed to load ran no test, and must count as a failure.
    failed: result.numFailedTests + result.numRuntimeErrorTestSuites,
    skipped: result.numPendingTests + result.numTodoTests,
  };
}

/**
 * Returns the last line of a run: `N passed, N failed[, N skipped]`. If KLATCH_TEST_RESULTS names a folder, this stores
 * the counts there under `name`. The line then sums all counts in the folder, so that the last of several runs reports
 * all of them.
 */
export function closingLine(name: string, counts: Counts): string {
  const folder = process.env['KLATCH_TEST_RESULTS'];
  const all = folder === undefined || folder === '' ? [counts] : keep(folder, name, counts);
  const sum = (of: keyof Counts): number => all.reduce((total, each) => total + each[of], 0);
  const skipped = sum('skipped');
  return `${sum('passed')} passed, ${sum('failed')} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

function keep(folder: string, name: string, counts: Counts): Counts[] {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.json`), JSON.stringify(counts));
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'));
  return files.map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Counts);
}
