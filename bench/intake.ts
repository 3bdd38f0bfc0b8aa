import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ServerProcess } from '../test/support/server-process.ts';
import { noPreparation, openOrStop, type BenchSession, type RoundResult } from './bench-session.ts';
import { cpuSeconds, residentMiB } from './support/cpu.ts';
import { runLoad, type LoadResult } from './load.ts';
import { countOf, metricsUrl } from './support/metrics.ts';
import { BenchProcess } from './process.ts';
import { median, report, round } from './support/report.ts';

const ROUNDS = 7;
const CONNECTIONS = 64;
const GROUPS = 50;
const ROUND_MS = 3_000;
const WARM_UP_MS = 3_000;
const LOG_ROUND_MS = 1_500;
const TARGET = 0.7;

export const SETTINGS =
  'limits { token-rate = 100000, token-burst = 1000000, hook-registrations-per-minute = 10000 }\nlog.level = warn';

interface Round {
  readonly klatch: LoadResult & Cost;
  readonly bare: LoadResult;
  readonly single: LoadResult;
  /**
   * The rates of a message log without HTTP, in posts a second. `plain` has only plain posts; in `alerts`, one post in
   * a hundred changes an alert.
   */
  readonly log: { readonly plain: number; readonly alerts: number };
}

/** The CPU time of a post in microseconds, the messages per commit, and the server's memory at the end. */
interface Cost {
  readonly serverUs: number;
  readonly databaseUs: number;
  readonly perCommit: number;
  readonly memoryMiB: number;
}

interface Pids {
  readonly server: number;
  readonly database: number;
}

async function withCost(
  { pids, metrics }: { pids: Pids; metrics: string },
  load: () => Promise<LoadResult>,
): Promise<LoadResult & Cost> {
  const commits = await countOf(metrics, 'klatch_intake_commits_total');
  const before = { server: cpuSeconds(pids.server), database: cpuSeconds(pids.database) };
  const started = performance.now();
  const result = await load();
  const posts = (result.rate * (performance.now() - started)) / 1000;
  return {
    ...result,
    serverUs: ((cpuSeconds(pids.server) - before.server) / posts) * 1e6,
    databaseUs: ((cpuSeconds(pids.database) - before.database) / posts) * 1e6,
    perCommit: posts / ((await countOf(metrics, 'klatch_intake_commits_total')) - commits),
    memoryMiB: residentMiB(pids.server),
  };
}

/**
 * Measures durable posts. The baselines are a bare Express handler that parses the same body, and a transaction for
 * each request.
 */
export async function benchIntake(): Promise<boolean> {
  const server = await ServerProcess.create(SETTINGS);
  const stops: (() => Promise<void>)[] = [() => server.remove()];
  try {
    await server.start();
    const paths = await createGroups(server);
    const bare = await BenchProcess.start('programs/bare-express.ts');
    const address = [join(server.dataDir, 'postgresql.run'), '5432'];
    const single = await BenchProcess.start('programs/one-commit-each.ts', address);
    const log = await BenchProcess.start('programs/alert-intake.ts', address);
    stops.unshift(
      () => bare.process.stop(),
      () => single.process.stop(),
      () => log.process.stop(),
    );
    const logRate = async (alertsInHundred: number): Promise<number> =>
      Number(await log.process.ask(`${alertsInHundred} ${LOG_ROUND_MS}`));
    const load = (origin: string, durationMs = ROUND_MS): Promise<LoadResult> =>
      runLoad({ origin, paths, connections: CONNECTIONS, durationMs });
    const origins = {
      klatch: server.url,
      bare: `http://127.0.0.1:${bare.first}`,
      single: `http://127.0.0.1:${single.first}`,
    };
    const database = Number(readFileSync(join(server.dataDir, 'postgresql/postmaster.pid'), 'utf8').split('\n')[0]);
    const measured = { pids: { server: server.pid, database }, metrics: await metricsUrl(server) };
    // The warm-up is long enough for V8 to compile the hot code of all servers.
    for (const origin of Object.values(origins)) await load(origin, WARM_UP_MS);
    for (const alertsInHundred of [0, 1]) await logRate(alertsInHundred);
    const rounds: Round[] = [];
    for (let n = 0; n < ROUNDS; n += 1) {
      rounds.push({
        klatch: await withCost(measured, () => load(origins.klatch)),
        bare: await load(origins.bare),
        single: await load(origins.single, 1_000),
        log: { plain: await logRate(0), alerts: await logRate(1) },
      });
    }
    return print(rounds);
  } finally {
    for (const stop of stops) await stop();
  }
}

/** Runs only the server, round by round. */
export async function openIntake(): Promise<BenchSession> {
  const server = await ServerProcess.create(SETTINGS);
  const stop = (): Promise<void> => server.remove();
  return openOrStop([stop], async () => {
    await server.start();
    const paths = await createGroups(server);
    const load = (durationMs: number): Promise<LoadResult> =>
      runLoad({ origin: server.url, paths, connections: CONNECTIONS, durationMs });
    await load(WARM_UP_MS);
    const round = async (): Promise<RoundResult> => {
      const { answers, rate, failed } = await load(ROUND_MS);
      if (failed > 0) throw new Error(`${failed} posts were not answered 200`);
      return { units: answers, seconds: answers / rate };
    };
    return { prepare: noPreparation, round, stop };
  });
}

/** Creates the groups; returns the paths of their webhooks. */
async function createGroups(server: ServerProcess): Promise<string[]> {
  const paths: string[] = [];
  for (let n = 0; n < GROUPS; n += 1) paths.push(new URL((await server.createGroup(`Group ${n}`)).webhook).pathname);
  return paths;
}

function print(rounds: readonly Round[]): boolean {
  const rows = rounds.map(({ klatch, bare, single, log }) => ({
    'posts/s': round(klatch.rate),
    'bare Express/s': round(bare.rate),
    ratio: round(klatch.rate / bare.rate, 3),
    'commit each/s': round(single.rate),
    'p50 ms': round(klatch.p50, 1),
    'p99 ms': round(klatch.p99, 1),
    'server µs/post': round(klatch.serverUs),
    'database µs/post': round(klatch.databaseUs),
    'messages/commit': round(klatch.perCommit, 1),
    'memory MiB': round(klatch.memoryMiB),
    failed: klatch.failed,
    'log alone/s': round(log.plain),
    'with 1 % alerts/s': round(log.alerts),
  }));
  const ratio = round(median(rounds.map(({ klatch, bare }) => klatch.rate / bare.rate)), 3);
  report('intake: durable posts, 64 connections, 50 groups', rows, {
    bench: 'intake',
    ratio,
    baseline: 'bare Express handler',
    rate: round(median(rounds.map((r) => r.klatch.rate))),
    target: TARGET,
    'ratio of the log with 1 % alerts': round(median(rounds.map((r) => r.log.alerts / r.log.plain)), 3),
    'ratio to a transaction per request': round(median(rounds.map((r) => r.klatch.rate / r.single.rate)), 1),
    p50: round(median(rounds.map((r) => r.klatch.p50)), 1),
    p99: round(median(rounds.map((r) => r.klatch.p99)), 1),
    'messages per commit': round(median(rounds.map((r) => r.klatch.perCommit)), 1),
    'memory MiB': round(median(rounds.map((r) => r.klatch.memoryMiB))),
  });
  return ratio >= TARGET;
}
