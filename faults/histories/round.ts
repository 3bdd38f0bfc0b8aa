import { setTimeout as wait } from 'node:timers/promises';
import { judgeHistory } from './checker.ts';
import type { Coverage } from './coverage.ts';
import type { History, ServerAction } from './history.ts';
import type { HookReceiver, LogicalClock } from './hook-receiver.ts';
import type { Installation } from './installation.ts';
import { PlayedGroup, type RoundContext } from './played-group.ts';
import { Random } from './random.ts';
import { timelineOf } from './timeline.ts';

/** A round without a restore ends the server once or twice, so that its histories have two or three parts. */
const PARTS = [2, 3] as const;
const MAX_STEPS_OF_PART = 20;
const MIN_STEPS_OF_PART = 5;
/** The server ends at a random time of at most this after the groups began to post. */
const MAX_POSTING_MS = 60;

export interface RoundOptions {
  readonly seed: number;
  readonly histories: number;
  /** Whether the round restores the server to an older backup, once, or twice to the same backup. */
  readonly restores: boolean;
  /** Counts the actions and results that the histories contain. */
  readonly coverage: Coverage;
}

/** The result of a round. */
export interface RoundResult {
  readonly seed: number;
  readonly histories: number;
  readonly deliveries: number;
  readonly violations: readonly string[];
}

/** The server and the receivers with which histories are played. */
export interface Environment {
  readonly installation: Installation;
  readonly receiver: HookReceiver;
  readonly clock: LogicalClock;
}

/**
 * Plays several histories at the same time, each in its own group with its own random choices. Each end of the server
 * interrupts all of them, while deliveries are in flight. The next part of each begins when the server runs again.
 */
export async function playRound(environment: Environment, options: RoundOptions): Promise<RoundResult> {
  const { seed, restores } = options;
  const random = new Random(seed);
  const authors = await environment.installation.createAuthors(`author-${seed}`);
  const context: RoundContext = { ...environment, authors };
  const groups = await inAllOf(Array.from({ length: options.histories }), (_, index) =>
    PlayedGroup.create(context, new Random(seed * 1_000 + index)),
  );
  const play = (isUndone = false): Promise<unknown> =>
    inAllOf(groups, (group) => group.play(random.between(MIN_STEPS_OF_PART, MAX_STEPS_OF_PART), isUndone));
  await play();
  if (restores) {
    await playRestored(environment, groups, { random, playUndone: () => play(true) });
    await play();
  }
  for (let part = random.pick(PARTS); part > 1; part -= 1) {
    await strike(environment, groups, random);
    await play();
  }
  const histories = await inAllOf(groups, (group) => group.end());
  for (const history of histories) options.coverage.add(history);
  return {
    seed,
    histories: histories.length,
    deliveries: histories.flatMap(({ hooks }) => hooks).reduce((sum, { arrivals }) => sum + arrivals.length, 0),
    violations: histories.flatMap((history) => judge(history, seed)),
  };
}

/** Runs `work` for all elements at the same time. When all have ended, it throws the first failure, if there is one. */
async function inAllOf<From, To>(all: readonly From[], work: (one: From, index: number) => Promise<To>): Promise<To[]> {
  const ends = await Promise.allSettled(all.map(work));
  return ends.map((end) => {
    if (end.status === 'rejected') throw end.reason;
    return end.value;
  });
}

function judge(history: History, seed: number): string[] {
  const violations = judgeHistory(history).map((violation) => `seed ${seed}: ${violation}`);
  if (violations.length === 0) return [];
  const timelines = history.hooks.flatMap(({ hook, arrivals }) => [
    `hook ${hook}:`,
    ...timelineOf(history, hook, arrivals),
  ]);
  for (const line of timelines) console.log(line);
  return violations;
}

/** Ends the server by SIGKILL or SIGTERM, and starts it again. */
async function strike(environment: Environment, groups: readonly PlayedGroup[], random: Random): Promise<void> {
  const type = random.weighted<'killed' | 'stopped'>([
    [3, 'killed'],
    [1, 'stopped'],
  ]);
  recordInAll(groups, await endWhilePosting(environment, groups, { random, type }));
  await environment.installation.server.start();
}

/**
 * Plays a part of each history, ends the server, and restores a backup from before that part. Often does so a second
 * time, with the same backup.
 */
async function playRestored(
  environment: Environment,
  groups: readonly PlayedGroup[],
  { random, playUndone }: { readonly random: Random; readonly playUndone: () => Promise<unknown> },
): Promise<void> {
  const { installation, clock } = environment;
  const backupAt = clock.next();
  await installation.backUp();
  const returns = groups.map((group) => group.remember());
  for (let restores = random.between(1, 2); restores > 0; restores -= 1) {
    await playUndone();
    const type = random.pick(['killed', 'stopped'] as const);
    await endWhilePosting(environment, groups, { random, type });
    const asked = clock.next();
    await installation.restore();
    recordInAll(groups, { type: 'restored', backupAt, asked, answered: clock.next() });
    await installation.server.start();
    for (const goBack of returns) goBack();
    await inAllOf(groups, (group) => group.readEpoch());
  }
}

/** Ends the server while all groups post and their hooks deliver. */
async function endWhilePosting(
  { installation, receiver, clock }: Environment,
  groups: readonly PlayedGroup[],
  { random, type }: { readonly random: Random; readonly type: 'killed' | 'stopped' },
): Promise<ServerAction> {
  const posting = inAllOf(groups, (group) => group.postUntilEnd());
  await wait(random.between(0, MAX_POSTING_MS));
  const asked = clock.next();
  await (type === 'killed' ? installation.kill() : installation.stop());
  await receiver.disconnected();
  const answered = clock.next();
  await posting;
  await installation.sessionsEnded();
  await inAllOf(groups, (group) => group.findUnansweredPost());
  return { type, asked, answered };
}

function recordInAll(groups: readonly PlayedGroup[], action: ServerAction): void {
  for (const { actions } of groups) actions.push(action);
}
