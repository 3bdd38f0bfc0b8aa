import { setTimeout as wait } from 'node:timers/promises';
import { postJson, type TestGroup } from '../test/support/server.ts';
import { ServerProcess } from '../test/support/server-process.ts';
import { openOrStop, stopAll, type BenchSession, type RoundResult } from './bench-session.ts';
import { appendToLogs } from './seed-data.ts';
import { SETTINGS } from './intake.ts';
import { postMessages } from './load.ts';
import { BenchProcess } from './process.ts';
import { median, report, round } from './support/report.ts';

/** Rounds that do not count: in them, V8 compiles the hot code of all processes. */
const WARM_UP_ROUNDS = 3;
/** Enough rounds that a slow minute of the machine does not decide the result. */
const ROUNDS = 15;
/** The number of groups that each round posts into. */
export const GROUPS = 10;
const HOOKS = 10;
const MESSAGES = 200;
/** The number of connections that post into one group. */
const POSTERS = 4;
/** The number of simultaneous connections to the sink; `delivery.per-host` has to allow them. */
export const CONNECTIONS = 64;
const TARGET = 0.5;
/** With `EVENTS=1` the hooks request events, although none occur: this measures the cost of the search for events. */
const ASKED_EVENTS = process.env['EVENTS'] === '1' ? ['message.updated', 'message.deleted'] : [];
/** The number of deliveries of one round. */
export const DELIVERIES = GROUPS * HOOKS * MESSAGES;

interface Round {
  /** Deliveries a second of messages that are already in the log. */
  readonly forward: number;
  /**
   * Deliveries a second while the messages are posted. For a hundred deliveries, the server then also accepts and
   * commits ten posts.
   */
  readonly posted: number;
  readonly bare: number;
}

/**
 * Measures 20,000 deliveries, with the cursors and attempts that the server records. The baseline is a bare loop that
 * makes, signs and posts as many. The loop accepts no posts, so the server gets only one post in each group during that
 * time. The table also shows the server's rate while all messages are posted.
 */
export async function benchForward(): Promise<boolean> {
  const server = await ServerProcess.create(`${SETTINGS}\ndelivery { per-host = ${CONNECTIONS} }`);
  const stops: (() => Promise<void>)[] = [() => server.remove()];
  try {
    const sink = await BenchProcess.start('programs/sink.ts');
    stops.unshift(() => sink.process.stop());
    const bare = await BenchProcess.start('programs/bare-undici.ts', [sink.first, String(CONNECTIONS)]);
    stops.unshift(() => bare.process.stop());
    await server.start();
    const groups: TestGroup[] = [];
    for (let g = 0; g < GROUPS; g += 1) groups.push(await server.createGroup(`Group ${g}`));
    await registerHooks(groups, sink.first);
    const rows: Round[] = [];
    for (let n = 0; n < WARM_UP_ROUNDS + ROUNDS; n += 1) {
      const posted = DELIVERIES / (await timeForward(groups, sink.process));
      await appendToLogs(server, groups, MESSAGES - 1);
      const forward = DELIVERIES / (await timeForward(groups, sink.process, 1));
      const done = sink.process.ask(`count ${DELIVERIES}`);
      const bareRate = DELIVERIES / Number(await bare.process.ask(`send ${DELIVERIES}`));
      await done;
      if (n >= WARM_UP_ROUNDS) rows.push({ forward, posted, bare: bareRate });
    }
    return print(rows);
  } finally {
    for (const stop of stops) await stop();
  }
}

/** Runs only the server and its sink, round by round. Each round delivers messages that were in the log before. */
export async function openForward(): Promise<BenchSession> {
  const server = await ServerProcess.create(`${SETTINGS}\ndelivery { per-host = ${CONNECTIONS} }`);
  const stops: (() => Promise<void>)[] = [() => server.remove()];
  return openOrStop(stops, async () => {
    const sink = await BenchProcess.start('programs/sink.ts');
    stops.unshift(() => sink.process.stop());
    await server.start();
    const groups: TestGroup[] = [];
    for (let g = 0; g < GROUPS; g += 1) groups.push(await server.createGroup(`Group ${g}`));
    await registerHooks(groups, sink.first);
    const prepare = (): Promise<void> => appendToLogs(server, groups, MESSAGES - 1);
    const round = async (): Promise<RoundResult> => {
      return { units: DELIVERIES, seconds: await timeForward(groups, sink.process, 1) };
    };
    for (let n = 0; n < WARM_UP_ROUNDS; n += 1) {
      await prepare();
      await round();
    }
    return { prepare, round, stop: () => stopAll(stops) };
  });
}

/** Registers hooks in each group, all with URLs of one sink. */
export async function registerHooks(groups: readonly TestGroup[], sinkPort: string): Promise<void> {
  for (const group of groups) {
    for (let h = 0; h < HOOKS; h += 1) {
      const hook = { url: `http://127.0.0.1:${sinkPort}/hook/${h}`, events: ASKED_EVENTS };
      const answer = await postJson(`${group.webhook}/reverse`, hook);
      if (answer.status !== 201) throw new Error(`a registration was answered ${answer.status}`);
    }
  }
}

/**
 * Returns the seconds from the first post to the arrival of the last delivery. `posts`: posts into each group; fewer
 * than all if the other messages are already in the log.
 */
export async function timeForward(groups: readonly TestGroup[], sink: BenchProcess, posts = MESSAGES): Promise<number> {
  const done = sink.ask(`count ${DELIVERIES}`);
  const started = performance.now();
  await Promise.all(groups.map((group) => postMessages(group.webhook, posts, POSTERS)));
  await done;
  const seconds = (performance.now() - started) / 1000;
  // Without this wait, the last settlements (records of deliveries) would fall into the next round.
  for (const group of groups) {
    while ((await pendingOf(group)) > 0) await wait(20);
  }
  return seconds;
}

async function pendingOf(group: TestGroup): Promise<number> {
  const hooks = (await (await fetch(`${group.webhook}/reverse`)).json()) as { pending: number }[];
  return hooks.reduce((sum, hook) => sum + hook.pending, 0);
}

function print(rounds: readonly Round[]): boolean {
  const rows = rounds.map(({ forward, posted, bare }) => ({
    'deliveries/s': round(forward),
    'while posted/s': round(posted),
    'bare undici/s': round(bare),
    ratio: round(forward / bare, 3),
    'ratio while posted': round(posted / bare, 3),
  }));
  const ratio = round(median(rounds.map(({ forward, bare }) => forward / bare)), 3);
  report(`forward: ${DELIVERIES} deliveries to one sink, ${CONNECTIONS} connections`, rows, {
    bench: 'forward',
    ratio,
    'ratio while posted': round(median(rounds.map(({ posted, bare }) => posted / bare)), 3),
    baseline: 'bare undici loop that makes and signs the same bodies',
    rate: round(median(rounds.map((r) => r.forward))),
    target: TARGET,
  });
  return ratio >= TARGET;
}
