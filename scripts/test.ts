/**
 * Runs jest and ends with one plain line, `N passed, N failed[, N skipped]`, made from jest's own JSON result.
 * Arguments are handed to jest: `npm test -- test/http`.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface JestResult {
  readonly success: boolean;
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly numFailedTestSuites: number;
  readonly numRuntimeErrorTestSuites: number;
}

function runJest(outputFile: string): number {
  const jest = join(import.meta.dirname, '../node_modules/jest/bin/jest.js');
  const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
  const args = [...flags, jest, '--json', `--outputFile=${outputFile}`, ...process.argv.slice(2)];
  // jest --json prints the whole result on stdout as well; the readable report is on stderr.
  const run = spawnSync(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  return run.status ?? 1;
}

function closingLine(result: JestResult): string {
  // A suite that could not even load ran no test, and must not look like a pass.
  const failed = result.numFailedTests + result.numRuntimeErrorTestSuites;
  const skipped = result.numPendingTests + result.numTodoTests;
  return `${result.numPassedTests} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

const folder = mkdtempSync(join(tmpdir(), 'klatch-test-'));
try {
  const outputFile = join(folder, 'jest.json');
  const status = runJest(outputFile);
  const result = JSON.parse(readFileSync(outputFile, 'utf8')) as JestResult;
  console.log(closingLine(result));
  process.exitCode = status !== 0 || !result.success || result.numPassedTests === 0 ? 1 : 0;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
