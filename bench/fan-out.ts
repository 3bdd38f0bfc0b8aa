import { setTimeout as wait } from 'node:timers/promises';
import { noPreparation, openOrStop, type BenchSession, type RoundResult } from './bench-session.ts';
import { machineMs } from './support/clock.ts';
import { LiveStage, Posters, type Side } from './live/live-stage.ts';
import { median, percentile, report, round } from './support/report.ts';

const CLIENTS = 1_000;
const ROUNDS = 5;
const ROUND_MS = 3_000;
const WARM_UP_MS = 2_000;
/**
 * The number of connections that post. Each posts its next message when every client has got the current messages of
 * all connections.
 */
const CONNECTIONS = 64;
/** The rate of Klatch must be at least this many times that of the bare server. */
const TARGET = 1.5;
/** Messages a second in the paced part; with 1,000 clients, these are 4,000 deliveries. */
const PACE = 4;
const PACED_MESSAGES = 20;

const NAMES = ['ws', 'tcp', 'bare'] as const;
type Name = (typeof NAMES)[number];

/**
 * Measures one group with 1,000 live clients, compared with a bare server. The figures are the messages delivered a
 * second, and the delay until the last client has a message.
 */
export async function benchFanOut(): Promise<boolean> {
  const stage = await LiveStage.start();
  try {
    const follow = { default: 'now' };
    const sides: Record<Name, Side> = {
      ws: await stage.people('ws', CLIENTS, follow),
      tcp: await stage.people('tcp', CLIENTS, follow),
      bare: await stage.bare(CLIENTS),
    };
    for (const name of NAMES) await sides[name].clients.ask('open');
    for (const name of NAMES) await deliver(sides[name], WARM_UP_MS);
    const rounds: Record<Name, number>[] = [];
    for (let n = 0; n < ROUNDS; n += 1) {
      rounds.push({
        ws: await deliver(sides.ws, ROUND_MS),
        bare: await deliver(sides.bare, ROUND_MS),
        tcp: await deliver(sides.tcp, ROUND_MS),
      });
    }
    const late: Record<Name, number[]> = { ws: [], tcp: [], bare: [] };
    for (let n = 0; n < ROUNDS; n += 1) {
      for (const name of NAMES) late[name].push(...(await pace(sides[name])));
    }
    return print(rounds, late);
  } finally {
    await stage.stop();
  }
}

/** Runs only the server and its WebSocket clients, round by round. */
export async function openFanOut(): Promise<BenchSession> {
  const stage = await LiveStage.start();
  const stop = (): Promise<void> => stage.stop();
  return openOrStop([stop], async () => {
    const side = await stage.people('ws', CLIENTS, { default: 'now' });
    await side.clients.ask('open');
    await deliver(side, WARM_UP_MS);
    const round = async (): Promise<RoundResult> => {
      const started = performance.now();
      const rate = await deliver(side, ROUND_MS);
      const seconds = (performance.now() - started) / 1_000;
      return { units: rate * seconds, seconds };
    };
    return { prepare: noPreparation, round, stop };
  });
}

/**
 * Returns the deliveries a second to all clients together. A connection posts again when every client has the current
 * messages.
 */
async function deliver(side: Side, durationMs: number): Promise<number> {
  const posters = await Posters.open(side, CONNECTIONS);
  try {
    const started = performance.now();
    let delivered = 0;
    while (performance.now() - started < durationMs) delivered += (await posters.volley()) * side.count;
    return delivered / ((performance.now() - started) / 1_000);
  } finally {
    posters.close();
  }
}

/** Posts PACE messages a second. Returns the time of each, in ms, from the post until the last client has it. */
async function pace(side: Side): Promise<number[]> {
  const posters = await Posters.open(side, 1);
  try {
    await side.clients.ask('mark');
    const postedMs: number[] = [];
    const started = performance.now();
    for (let n = 0; n < PACED_MESSAGES; n += 1) {
      await wait(Math.max(0, started + (n * 1_000) / PACE - performance.now()));
      postedMs.push(machineMs());
      await posters.post(posters.first, `mark-${String(n).padStart(7, '0')}`);
    }
    await side.clients.ask(`wait ${side.posted * side.count}`);
    const marks = JSON.parse(await side.clients.ask('marks')) as [number, number, number][];
    if (marks.length !== PACED_MESSAGES || marks.some(([, count]) => count !== side.count))
      throw new Error('a message is missing');
    return marks.map(([n, , lastMs]) => lastMs - postedMs[n]!);
  } finally {
    posters.close();
  }
}

function print(rounds: readonly Record<Name, number>[], late: Record<Name, number[]>): boolean {
  const ratioOf = (name: Name): number => round(median(rounds.map((each) => each[name] / each.bare)), 2);
  const p99 = (name: Name): number => round(percentile(late[name], 0.99), 1);
  const p50 = (name: Name): number => round(percentile(late[name], 0.5), 1);
  const rows = rounds.map((each) => ({
    'ws, delivered/s': round(each.ws),
    'tcp, delivered/s': round(each.tcp),
    'bare ws, delivered/s': round(each.bare),
    'ws ratio': round(each.ws / each.bare, 2),
    'tcp ratio': round(each.tcp / each.bare, 2),
  }));
  const ratio = Math.min(ratioOf('ws'), ratioOf('tcp'));
  report(`fan-out: one group, ${CLIENTS} live clients, ${CONNECTIONS} posts at a time through the webhook`, rows, {
    bench: 'fan-out',
    ratio,
    target: TARGET,
    baseline: 'bare ws server that sends each message to each client and stores nothing; the lower one of ws and tcp',
    rate: round(median(rounds.map((each) => each.ws))),
    'ws ratio': ratioOf('ws'),
    'tcp ratio': ratioOf('tcp'),
    'paced, deliveries/s': PACE * CLIENTS,
    'paced, post to last client p50 ms': { ws: p50('ws'), tcp: p50('tcp'), bare: p50('bare') },
    'paced, post to last client p99 ms': { ws: p99('ws'), tcp: p99('tcp'), bare: p99('bare') },
  });
  return ratio >= TARGET;
}
