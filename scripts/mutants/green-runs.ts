import { runTests, type TestRun } from './jest-run.ts';
import type { Mutant } from './mutant.ts';

/** jest's option for a pattern of test names. */
const NAMES = '-t';

/** Runs tests without a fault. Mutants with tests of the same files share one run of all these tests. */
export class GreenRuns {
  readonly #root: string;
  readonly #patterns: ReadonlyMap<string, readonly string[]>;
  readonly #runs = new Map<string, TestRun>();

  constructor(root: string, mutants: readonly Mutant[]) {
    this.#root = root;
    const selections = mutants.map(({ tests }) => selectionOf(tests));
    const byFiles = Map.groupBy(selections, ({ files }) => JSON.stringify(files));
    this.#patterns = new Map([...byFiles].map(([key, all]) => [key, all.map(({ pattern }) => pattern)]));
  }

  /** The results of these tests, without the results of others that ran with them. */
  async of(tests: readonly string[]): Promise<TestRun> {
    const { files, pattern } = selectionOf(tests);
    const key = JSON.stringify(files);
    const run = this.#runs.get(key) ?? (await this.#run(files, this.#patterns.get(key) ?? [pattern]));
    this.#runs.set(key, run);
    // jest ignores upper and lower case in the pattern as well.
    const names = new RegExp(pattern, 'i');
    const passedMs = new Map([...run.passedMs].filter(([name]) => names.test(name)));
    const failed = run.failed.filter((name) => names.test(name));
    const isNone = passedMs.size + failed.length === 0;
    return { ...run, passedMs, failed, broken: run.broken ?? (isNone ? 'no test matched' : null) };
  }

  #run(files: readonly string[], patterns: readonly string[]): Promise<TestRun> {
    const isWhole = patterns.includes('');
    const names = [...new Set(patterns)].map((pattern) => `(?:${pattern})`).join('|');
    return runTests(this.#root, isWhole ? files : [...files, NAMES, names], null);
  }
}

/**
 * Splits arguments for jest into files and a pattern of test names. Without a pattern, all tests of the files are
 * selected.
 */
function selectionOf(tests: readonly string[]): { files: readonly string[]; pattern: string } {
  const at = tests.indexOf(NAMES);
  if (at === -1) return { files: tests, pattern: '' };
  return { files: tests.filter((_, index) => index !== at && index !== at + 1), pattern: tests[at + 1] ?? '' };
}
