/**
 * `make faults`: strikes a real server with every fault, and replaces the rows of these faults in docs/fault-report.md.
 * - `QUICK=1` strikes less often and writes no row.
 * - `ONLY=kill,hang` runs some faults, `ONLY=cluster` all of `cluster-…`.
 * - `OUT=file.json` writes the results for programs.
 * - `FROM=one.json,two.json` makes rows of such files, from runs in another folder, and runs nothing.
 * - `ONLY=histories` plays random histories instead, which are not on the page; `SEED=7,9` plays only those rounds.
 * Exits with 1 after a violation, 64 for an unknown name or an unreadable file, and 130 after an interruption. An
 * interrupted run cleans up first.
 */
import { writeFile } from 'node:fs/promises';
import { allFaults } from './all.ts';
import { CleanUp } from './clean-up.ts';
import { emptyResult, runFault, type Fault, type FaultResult } from './fault.ts';
import { runHistories } from './histories/run.ts';
import { describeMachine } from './machine.ts';
import { notesOf, rowOf, summaryOf, tableOf } from './report.ts';
import { readRows, updateReport } from './stored-report.ts';

/**
 * Time limits that only a hang exceeds; such a run fails. On two cores the suite takes about 75 minutes, and 3 with
 * QUICK=1. The faults of a cluster take 70 and 13 minutes more.
 */
const FULL_MS = 6 * 3_600_000;
const QUICK_MS = 30 * 60_000;
/** The name in `ONLY=` that selects random histories, which are no fault of the report. */
const HISTORIES = 'histories';

/** The value of an environment variable; null if it is unset or empty, since make passes unset ones as empty. */
function setting(name: string): string | null {
  const value = process.env[name];
  return value === undefined || value === '' ? null : value;
}

function chosen(only: string | null): readonly Fault[] {
  if (only === null) return allFaults;
  const names = only.split(',');
  const unknown = names.filter((name) => !allFaults.some((fault) => isNamed(fault, name)));
  if (unknown.length > 0) {
    console.error(
      `there is no fault ${unknown.join(', ')}; there are ${[...allFaults.map(({ name }) => name), HISTORIES].join(', ')}`,
    );
    process.exit(64);
  }
  return allFaults.filter((fault) => names.some((name) => isNamed(fault, name)));
}

/** Whether `wanted` is the name of the fault or the first part of it: `cluster` selects all of `cluster-…`. */
function isNamed({ name }: Fault, wanted: string): boolean {
  return name === wanted || name.startsWith(`${wanted}-`);
}

function print(result: FaultResult): void {
  const { name, runs, messages, lost, outOfOrder, duplicates, seconds } = result;
  const verdict = result.violations.length > 0 ? 'FAILED' : result.notRun === null ? 'survived' : 'not run';
  console.log(
    `${name.padEnd(18)} ${verdict.padEnd(8)} ${runs} runs, ${messages} messages, ${lost} lost, ` +
      `${outOfOrder} out of order, ${duplicates} duplicates, ${seconds} s`,
  );
  // Prints each violation at once, because somebody may interrupt a run of an hour before its summary.
  for (const violation of result.violations) console.log(`  - ${violation}`);
}

/** On Ctrl-C and other signals, cleans up and ends the process. */
function endOnSignals(current: () => CleanUp): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (interrupted) return;
      interrupted = true;
      console.error('interrupted: cleaning up ...');
      void current()
        .end()
        .then((problems) => {
          for (const problem of problems) console.error(`not cleaned up: ${problem}`);
          process.exit(130);
        });
    });
  }
}

/** Plays random histories and ends the process, with the status 1 after a violation or a failed clean-up. */
async function playHistories(): Promise<never> {
  const seeds = setting('SEED')?.split(',').map(Number) ?? null;
  const isRight = await runHistories({ quick, seeds, cleanUp }).catch((error: unknown) => {
    console.error(error);
    return false;
  });
  const problems = await cleanUp.end();
  for (const problem of problems) console.error(`not cleaned up: ${problem}`);
  process.exit(isRight && problems.length === 0 ? 0 : 1);
}

/** Adds rows from stored results to the report, and ends the process. */
async function addRowsAndExit(files: readonly string[]): Promise<never> {
  try {
    const rows = await Promise.all(files.map(readRows));
    await updateReport(rows.flat());
  } catch (error) {
    console.error(`the report is as it was: ${(error as Error).message}`);
    process.exit(64);
  }
  process.exit(0);
}

let interrupted = false;
const quick = setting('QUICK') !== null;
const only = setting('ONLY');
const out = setting('OUT');
let cleanUp = new CleanUp();
endOnSignals(() => cleanUp);
if (only === HISTORIES) await playHistories();
const from = setting('FROM');
if (from !== null) await addRowsAndExit(from.split(','));
const faults = chosen(only);
const machine = await describeMachine();
const startedAt = new Date();
const started = performance.now();
const endsAt = started + (quick ? QUICK_MS : FULL_MS);
const results: FaultResult[] = [];
for (const fault of faults) {
  const runs = quick ? fault.runs.quick : fault.runs.full;
  const limitMs = endsAt - performance.now();
  const result =
    limitMs > 0
      ? await runFault(fault, runs, { cleanUp, limitMs })
      : emptyResult(fault, { notRun: null, violations: ['the time of the suite was over'] });
  // After a signal, its handler ends the process when the clean-up is done.
  if (interrupted) await new Promise(() => {});
  results.push(result);
  print(result);
  // The suite writes the report after each fault, so that an interrupted run keeps its rows.
  if (!quick) await updateReport([rowOf(result, { startedAt, machine })]);
  if (out !== null) await writeFile(out, `${JSON.stringify({ startedAt, quick, machine, results }, null, 2)}\n`);
  cleanUp = new CleanUp();
}
const seconds = Math.round((performance.now() - started) / 1000);
console.log(`\n${tableOf(results)}\n`);
for (const note of notesOf(results)) console.log(`- ${note}`);
console.log(`\n${summaryOf(results)}; ${seconds} s; commit ${machine.commit}`);
if (results.some((result) => result.violations.length > 0)) process.exitCode = 1;
