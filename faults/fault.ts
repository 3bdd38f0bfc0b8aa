import { MAX_REQUESTS_COMPLETED_AHEAD } from '../src/delivery/unordered-in-flight-window.ts';
import { MAX_IN_FLIGHT } from '../src/delivery/unordered-strategy.ts';
import { CleanUp, within } from './clean-up.ts';
import type { HookKind, Recovery, Stage } from './stage.ts';
import { until } from './until.ts';
import { judge, type Verdict } from './verdict.ts';

/** What this machine lacks for a fault, as a sentence that says what to do; null: nothing is missing. */
export type Lack = string | null;

/** A fault that strikes repeatedly while messages flow. */
export interface Fault {
  /** The name of the fault in `ONLY=` of `make faults`. */
  readonly name: string;
  /** The first column of the report's row. */
  readonly title: string;
  /** The number of runs: with `make faults` (100 if a run takes under 10 s), with QUICK=1, and in the tests. */
  readonly runs: { readonly full: number; readonly quick: number; readonly test: number };
  /** The longest expected time of one run, without the set-up. `hangLimitMs` allows four times as much. */
  readonly runMs: number;
  /**
   * The number of deliveries that a lane may repeat in each run. If a process or its database ends, these are the
   * deliveries that are not settled (recorded in the database) yet.
   */
  readonly repeatsPerLane: number;
  readonly lacks?: () => Promise<Lack>;
  readonly open: (cleanUp: CleanUp) => Promise<Scene>;
}

/** A fault that is ready to strike. */
export interface Scene {
  readonly stage: Stage;
  /** Breaks something, repairs it, and calls `stage.faultEnds` at the moment when nothing is broken any more. */
  readonly strike: (run: number) => Promise<void>;
  /** Runs once all lanes deliver again. It restores what the fault removed. */
  readonly afterwards?: (run: number) => Promise<void>;
  /** Resolves when everything has also arrived at the clients that are not hooks. Called before the verdict. */
  readonly settle?: () => Promise<void>;
  /** Replaces the verdict on the hooks, for a fault that may lose acknowledged messages. */
  readonly verdict?: () => Verdict;
  /** Violations beyond those of the verdict, in words; called at the end. */
  readonly violations?: (recoveries: readonly Recovery[]) => readonly string[];
  /**
   * Precautions that the servers took because the machine was too slow for their time limits. The documentation allows
   * them, but they fail the row unless the run tolerates them.
   */
  readonly precautions?: () => readonly string[];
  /** A remark for the fault's row of the report. */
  readonly remark?: () => string;
}

/** Durations of one run. */
export interface RunTimes extends Recovery {
  /** The longest time after the strike during which the server answered no post with 200. */
  readonly longestPauseMs: number;
  readonly totalMs: number;
}

/** A row of the report. */
export interface FaultResult {
  readonly name: string;
  readonly title: string;
  readonly runs: number;
  readonly messages: number;
  readonly deliveries: number;
  readonly lost: number;
  readonly outOfOrder: number;
  readonly duplicates: number;
  /** The most duplicates of one lane in one run, and the allowed number of them. */
  readonly worstDuplicates: number;
  readonly allowedDuplicates: number;
  /** The number of changes that arrived a second time under the same number, with another text. */
  readonly changesWithTwoTexts: number;
  readonly recoveries: readonly RunTimes[];
  readonly seconds: number;
  readonly remark: string;
  /** The reasons why this row fails; empty when the system survived the fault. */
  readonly violations: readonly string[];
  /** The reason why the fault was not run; null: it was. */
  readonly notRun: Lack;
}

// Only a hang exceeds these time limits, also on a machine that is four times as slow. None of them measures speed.
const SET_UP_MS = 240_000;
const DRAIN_MS = 240_000;
const SLOW_MACHINE = 4;
const DRAIN_AFTER_FAILURE_MS = 5_000;
/**
 * The fault strikes when each hook has accepted this many further messages, plus a random number of at most as many.
 */
const WARM_UP_MESSAGES = 40;

/** The time limit, in ms, of the set-up and this many runs of a fault. Only a hang exceeds it. */
export const hangLimitMs = (fault: Fault, runs: number): number => SET_UP_MS + runs * fault.runMs * SLOW_MACHINE;

export interface FaultOptions {
  /** Its `end` ends the run and cleans up. */
  readonly cleanUp?: CleanUp;
  /** Time limit of all runs together. */
  readonly limitMs?: number;
  /** Pause of each caller after an answer; by default that of the stage. */
  readonly gapMs?: number;
  /**
   * True: precautions of the servers are no violations. Tests set it, since they share the machine with other programs.
   */
  readonly toleratesPrecautions?: boolean;
}

/** Strikes a fault `runs` times and judges the result. Closes everything that it opened, also after a failure. */
export async function runFault(
  fault: Fault,
  runs: number,
  {
    cleanUp = new CleanUp(),
    limitMs = Number.POSITIVE_INFINITY,
    gapMs,
    toleratesPrecautions = false,
  }: FaultOptions = {},
): Promise<FaultResult> {
  const lack = (await fault.lacks?.()) ?? null;
  if (lack !== null) return emptyResult(fault, { notRun: lack, violations: [] });
  const started = performance.now();
  let result: FaultResult;
  try {
    result = await within(
      Math.min(limitMs, hangLimitMs(fault, runs)),
      play(fault, runs, { cleanUp, gapMs, toleratesPrecautions }),
    );
  } catch (error) {
    result = emptyResult(fault, { notRun: null, violations: [(error as Error).message] });
  }
  const problems = (await cleanUp.end()).map((problem) => `not cleaned up: ${problem}`);
  const seconds = Math.round((performance.now() - started) / 1000);
  return { ...result, seconds, violations: [...result.violations, ...problems] };
}

interface PlayOptions {
  readonly cleanUp: CleanUp;
  readonly gapMs: number | undefined;
  readonly toleratesPrecautions: boolean;
}

async function play(
  fault: Fault,
  runs: number,
  { cleanUp, gapMs, toleratesPrecautions }: PlayOptions,
): Promise<FaultResult> {
  const scene = await fault.open(cleanUp);
  if (gapMs !== undefined) scene.stage.load.pace(gapMs);
  const recoveries: RunTimes[] = [];
  const failures: string[] = [];
  try {
    for (let run = 0; run < runs; run += 1) recoveries.push(await playOnce(scene, run));
    await scene.stage.load.stop();
  } catch (error) {
    failures.push((error as Error).message);
  }
  // The wait follows a failure too, so that the row shows what was lost up to then.
  await drain(scene.stage, failures.length === 0 ? DRAIN_MS : DRAIN_AFTER_FAILURE_MS);
  await scene.settle?.();
  const result = resultOf(fault, scene, recoveries);
  const precautions = toleratesPrecautions ? [] : (scene.precautions?.() ?? []);
  return { ...result, violations: [...failures, ...result.violations, ...precautions] };
}

async function playOnce({ stage, strike, afterwards }: Scene, run: number): Promise<RunTimes> {
  const started = performance.now();
  for (const { record } of stage.hooks) record.beginRun();
  // Each run begins when all lanes deliver.
  await stage.goOn(WARM_UP_MESSAGES * (1 + Math.random()));
  stage.load.watchPauses();
  await strike(run);
  const recovery = await stage.recover();
  await afterwards?.(run);
  return { ...recovery, longestPauseMs: stage.load.longestPauseMs, totalMs: performance.now() - started };
}

function resultOf(fault: Fault, scene: Scene, recoveries: readonly RunTimes[]): FaultResult {
  const { hooks, load, recorder } = scene.stage;
  const expectations = hooks.map(({ record, group, kind }) => ({
    record,
    acknowledged: load.acknowledged[group]!,
    allowedDuplicates: repeatsOf(kind, fault.repeatsPerLane),
  }));
  const verdict = scene.verdict?.() ?? judge(expectations);
  const { conflicts } = recorder.textByRev;
  return {
    ...emptyResult(fault, { notRun: null, violations: [] }),
    ...verdict,
    runs: recoveries.length,
    messages: load.posted,
    changesWithTwoTexts: conflicts,
    deliveries: hooks.reduce((sum, { record }) => sum + record.taken, 0),
    recoveries,
    remark: scene.remark?.() ?? '',
    violations: [
      ...verdict.violations,
      ...recorder.violations,
      ...(conflicts > 0 ? [`${conflicts} revs came twice with another text`] : []),
      ...(scene.violations?.(recoveries) ?? []),
    ],
  };
}

/**
 * The number of messages that a lane may repeat. With `order: none`, a lane repeats these in addition to the unsettled
 * ones: the requests in flight, and the requests that overtook them.
 */
function repeatsOf({ order, batch }: HookKind, deliveries: number): number {
  if (deliveries === 0) return 0;
  return (order === 'none' ? deliveries + MAX_IN_FLIGHT + MAX_REQUESTS_COMPLETED_AHEAD : deliveries) * batch;
}

/**
 * Waits until every hook has everything. A message that is missing at the time limit is no failure here: the verdict
 * counts it as lost.
 */
async function drain({ hooks, load }: Stage, timeoutMs: number): Promise<void> {
  await load.abort();
  const heads = load.heads();
  const arrived = (): boolean => hooks.every(({ record, group }) => record.through >= heads[group]!);
  await until('everything has arrived', arrived, timeoutMs).catch(() => {});
}

/** The row of a fault whose run did not complete. */
export function emptyResult(fault: Fault, why: Pick<FaultResult, 'notRun' | 'violations'>): FaultResult {
  const { name, title } = fault;
  const traffic = { runs: 0, messages: 0, deliveries: 0, lost: 0, outOfOrder: 0, changesWithTwoTexts: 0 };
  const repeats = { duplicates: 0, worstDuplicates: 0, allowedDuplicates: 0 };
  return { name, title, ...traffic, ...repeats, recoveries: [], seconds: 0, remark: '', ...why };
}
