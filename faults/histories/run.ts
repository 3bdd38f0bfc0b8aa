import type { CleanUp } from '../clean-up.ts';
import { Coverage } from './coverage.ts';
import { HookReceiver, LogicalClock } from './hook-receiver.ts';
import { Installation } from './installation.ts';
import { playRound, type Environment, type RoundResult } from './round.ts';

/** The number of histories of a round. They share a server, and so each of its ends and restores. */
const HISTORIES_OF_ROUND = 20;
const ROUNDS = { full: 50, quick: 5 };
/** Every fifth round restores a backup, from the second on. */
const ROUNDS_PER_RESTORE = 5;
const ROUND_WITH_RESTORE = 2;

export interface HistoryRunOptions {
  readonly quick: boolean;
  /** The seeds of the only rounds to play; null: all rounds. */
  readonly seeds: readonly number[] | null;
  readonly cleanUp: CleanUp;
}

/**
 * `make faults ONLY=histories`: plays 1,000 random histories against receivers that follow docs/reverse-webhooks.md,
 * and judges them by that page. Prints each violation with the seed of its round; `SEED=7,9` plays only those rounds.
 * Resolves to true when there was no violation and the histories covered every subject.
 */
export async function runHistories({ quick, seeds, cleanUp }: HistoryRunOptions): Promise<boolean> {
  const environment = await startEnvironment(cleanUp);
  const rounds = quick ? ROUNDS.quick : ROUNDS.full;
  const coverage = new Coverage();
  const results: RoundResult[] = [];
  for (const seed of seeds ?? Array.from({ length: rounds }, (_, index) => index + 1)) {
    const result = await playSeed(environment, seed, coverage);
    for (const violation of result.violations) console.log(violation);
    results.push(result);
    if (results.length % 5 === 0) console.log(summaryOf(results));
  }
  for (const line of coverage.describe()) console.log(line);
  // Rounds that were selected by seed need not cover all actions and results.
  const missing = seeds === null ? coverage.missing() : [];
  for (const name of missing) console.log(`too few of the histories had: ${name}`);
  console.log(summaryOf(results));
  return missing.length === 0 && results.every(({ violations }) => violations.length === 0);
}

/**
 * Plays the round of a seed. The same seed makes the same choices. The environment can be used again after a failed
 * round.
 */
export async function playSeed(
  environment: Environment,
  seed: number,
  coverage = new Coverage(),
): Promise<RoundResult> {
  const restores = seed % ROUNDS_PER_RESTORE === ROUND_WITH_RESTORE;
  try {
    return await playRound(environment, { seed, histories: HISTORIES_OF_ROUND, restores, coverage });
  } catch (error) {
    const violation = `seed ${seed}: it was not played to its end: ${String((error as Error).stack)}`;
    if (!environment.installation.server.running) await environment.installation.server.start();
    return { seed, histories: 0, deliveries: 0, violations: [violation] };
  }
}

/** A server, its database and its receivers, for successive rounds. */
export async function startEnvironment(cleanUp: CleanUp): Promise<Environment> {
  const clock = new LogicalClock();
  const receiver = await HookReceiver.start(clock);
  await cleanUp.add('receiver', () => receiver.stop());
  return { installation: await Installation.start(cleanUp), receiver, clock };
}

function summaryOf(results: readonly RoundResult[]): string {
  const sum = (of: (result: RoundResult) => number): number => results.reduce((total, each) => total + of(each), 0);
  return (
    `${sum(({ histories }) => histories)} histories, ${sum(({ deliveries }) => deliveries)} deliveries, ` +
    `${sum(({ violations }) => violations.length)} violations`
  );
}
