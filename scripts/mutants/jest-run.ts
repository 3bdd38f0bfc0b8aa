import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** The results of one jest run. */
export interface TestRun {
  /** Durations of the passed tests, by full name. */
  readonly passedMs: ReadonlyMap<string, number>;
  /** The full names of the failed tests. */
  readonly failed: readonly string[];
  /** The reason why the result proves nothing; null: the result counts. */
  readonly broken: string | null;
  readonly seconds: number;
}

interface JestCase {
  readonly status: string;
  readonly fullName: string;
  readonly duration?: number | null;
}

interface JestJson {
  readonly numRuntimeErrorTestSuites: number;
  readonly testResults: readonly { readonly assertionResults: readonly JestCase[] }[];
}

/** Time limits of one test and of a run, which end a hanging one; without them jest's own limits apply. */
export interface Limits {
  readonly testMs: number;
  readonly runMs: number;
}

/** Runs tests with jest in a copy of the source tree at `root`. Compiled files stay in that copy, for the next run. */
export async function runTests(root: string, tests: readonly string[], limits: Limits | null): Promise<TestRun> {
  const outputFile = join(root, 'jest-result.json');
  rmSync(outputFile, { force: true });
  const startedMs = performance.now();
  const ended = await runJest(root, tests, outputFile, limits);
  const seconds = (performance.now() - startedMs) / 1000;
  const nothing = { passedMs: new Map<string, number>(), failed: [], seconds };
  if (ended !== null) return { ...nothing, broken: ended };
  if (!existsSync(outputFile)) return { ...nothing, broken: 'jest left no result' };
  return { ...resultOf(JSON.parse(readFileSync(outputFile, 'utf8')) as JestJson), seconds };
}

function resultOf(json: JestJson): Omit<TestRun, 'seconds'> {
  const cases = json.testResults.flatMap(({ assertionResults }) => assertionResults);
  const passed = cases.filter(({ status }) => status === 'passed');
  const passedMs = new Map(passed.map(({ fullName, duration }) => [fullName, duration ?? 0]));
  const failed = cases.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName);
  if (json.numRuntimeErrorTestSuites > 0) return { passedMs, failed, broken: 'a test file did not load' };
  return { passedMs, failed, broken: passed.length + failed.length === 0 ? 'no test matched' : null };
}

/** Resolves with null when jest has exited, or with the reason why its result does not count. */
async function runJest(
  root: string,
  tests: readonly string[],
  outputFile: string,
  limits: Limits | null,
): Promise<string | null> {
  const args = [
    '--experimental-vm-modules',
    '--disable-warning=ExperimentalWarning',
    join(root, 'node_modules/jest/bin/jest.js'),
    '--json',
    `--outputFile=${outputFile}`,
    `--cacheDirectory=${join(root, 'jest-cache')}`,
    // A fault that `make mutants` has planted may leave handles open, which must not keep the run alive.
    '--forceExit',
    ...(limits === null ? [] : [`--testTimeout=${Math.ceil(limits.testMs)}`]),
    ...tests,
  ];
  return new Promise((resolve, reject) => {
    // jest gets its own process group, so that the end of a hanging run also ends the programs that its tests started.
    const jest = spawn(process.execPath, args, { cwd: root, stdio: 'ignore', detached: true });
    let reason: string | null = null;
    const kill = (why: string): void => {
      reason = why;
      if (jest.pid !== undefined) process.kill(-jest.pid, 'SIGKILL');
    };
    const onExit = (): void => kill('interrupted');
    process.once('exit', onExit);
    const limit = limits === null ? undefined : setTimeout(kill, limits.runMs, 'jest did not end');
    jest.once('error', reject);
    jest.once('exit', () => {
      clearTimeout(limit);
      process.off('exit', onExit);
      resolve(reason);
    });
  });
}
