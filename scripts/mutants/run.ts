/**
 * `make mutants`: plants each fault of this folder in a copy of the tree, one at a time. It runs the tests that should
 * notice the fault. `ONLY=name,name` and `AREA=log,live` run some faults only. Exit codes:
 * - 1: the tests notice less than 57 of 60 faults.
 * - 64: a name is unknown.
 * - 130: the run was interrupted.
 */
import { GreenRuns } from './green-runs.ts';
import { runTests, type Limits, type TestRun } from './jest-run.ts';
import { listMutants, type ListedMutant } from './list.ts';
import { MutantTree, plantedText } from './tree.ts';

const LEAST_SHARE = 57 / 60;
/** With a fault, a test may take this many times as long as without the fault, plus `EXTRA_MS`. */
const MAX_SLOWDOWN = 10;
const EXTRA_MS = 30_000;

type Verdict = 'noticed' | 'NOT NOTICED' | 'did not run';

interface Result {
  readonly mutant: ListedMutant;
  readonly verdict: Verdict;
  /** The first failed test, or the reason why the result proves nothing. */
  readonly detail: string;
  readonly seconds: number;
}

/** The names in a variable of the environment; make passes an unset variable as an empty one. */
function namesIn(variable: string, known: readonly string[]): readonly string[] | null {
  const value = process.env[variable];
  if (value === undefined || value === '') return null;
  const names = value.split(',');
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    console.error(`${variable} names ${unknown.join(', ')}, but there are only ${[...new Set(known)].join(', ')}`);
    process.exit(64);
  }
  return names;
}

function chosen(all: readonly ListedMutant[]): readonly ListedMutant[] {
  const only = namesIn(
    'ONLY',
    all.map(({ name }) => name),
  );
  const areas = namesIn(
    'AREA',
    all.map(({ area }) => area),
  );
  return all.filter(({ name, area }) => (only?.includes(name) ?? true) && (areas?.includes(area) ?? true));
}

/** The reason why these tests prove nothing, such as a failure without a fault; null: they pass. */
function whyUnfit({ broken, failed }: TestRun): string | null {
  return broken ?? (failed.length > 0 ? `fails without the fault: ${failed[0]}` : null);
}

async function judge(mutant: ListedMutant, tree: MutantTree, green: GreenRuns): Promise<Result> {
  const without = await green.of(mutant.tests);
  const unfit = whyUnfit(without);
  if (unfit !== null) return { mutant, verdict: 'did not run', detail: unfit, seconds: without.seconds };
  const testMs = EXTRA_MS + MAX_SLOWDOWN * Math.max(...without.passedMs.values());
  const limits: Limits = {
    testMs,
    runMs: EXTRA_MS + MAX_SLOWDOWN * without.seconds * 1000 + without.passedMs.size * testMs,
  };
  const restore = tree.plant(mutant);
  const run = await runTests(tree.root, mutant.tests, limits).finally(restore);
  const verdict = run.broken !== null ? 'did not run' : run.failed.length > 0 ? 'noticed' : 'NOT NOTICED';
  return { mutant, verdict, detail: run.broken ?? run.failed[0] ?? mutant.promise, seconds: run.seconds };
}

function lineOf({ mutant, verdict, detail, seconds }: Result): string {
  return `${mutant.area.padEnd(10)} ${mutant.name.padEnd(44)} ${verdict.padEnd(11)} ${seconds.toFixed(0).padStart(4)} s  ${detail}`;
}

async function judgeAll(mutants: readonly ListedMutant[], tree: MutantTree): Promise<readonly Result[]> {
  const green = new GreenRuns(tree.root, mutants);
  const results: Result[] = [];
  for (const mutant of mutants) {
    const result = await judge(mutant, tree, green);
    console.log(lineOf(result));
    results.push(result);
  }
  return results;
}

const mutants = chosen(await listMutants());
for (const mutant of mutants) plantedText(mutant);
const tree = new MutantTree();
process.once('exit', () => tree.remove());
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));
const results = await judgeAll(mutants, tree);
const noticed = results.filter(({ verdict }) => verdict === 'noticed').length;
const missed = results.filter(({ verdict }) => verdict !== 'noticed');
if (missed.length > 0) console.log(`\nNot noticed:\n${missed.map(lineOf).join('\n')}`);
console.log(`\n${noticed} of ${results.length} noticed`);
process.exitCode = results.length > 0 && noticed >= LEAST_SHARE * results.length ? 0 : 1;
