import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JestResult } from './closing-line.ts';

/** The exit status of jest, and its counts. */
export interface JestRun {
  readonly status: number;
  readonly result: JestResult;
}

export interface JestOptions {
  /** A command with its arguments within which jest runs, such as `unshare --net`. */
  readonly within?: readonly string[];
  /** Environment variables for jest, which override those of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs jest with these arguments; its readable report goes to standard error. Throws when it leaves no result. */
export function runJest(args: readonly string[], { within = [], env = {} }: JestOptions = {}): JestRun {
  const folder = mkdtempSync(join(tmpdir(), 'klatch-jest-'));
  try {
    const outputFile = join(folder, 'jest.json');
    const jest = join(import.meta.dirname, '../node_modules/jest/bin/jest.js');
    const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
    const line = [...within, process.execPath, ...flags, jest, '--json', `--outputFile=${outputFile}`, ...args];
    // `jest --json` also prints the whole result on stdout; the readable report is on stderr.
    const ended = spawnSync(line[0]!, line.slice(1), {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, ...env },
    });
    return { status: ended.status ?? 1, result: JSON.parse(readFileSync(outputFile, 'utf8')) as JestResult };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
