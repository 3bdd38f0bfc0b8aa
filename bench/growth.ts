import { setTimeout as wait } from 'node:timers/promises';
import type { TestGroup } from '../test/support/server.ts';
import { ServerProcess } from '../test/support/server-process.ts';
import { residentMiB } from './support/cpu.ts';
import { seedDatabase, measureDisk, type DiskBytes, type SeedOptions } from './seed-data.ts';
import { CONNECTIONS, DELIVERIES, GROUPS as FORWARD_GROUPS, registerHooks, timeForward } from './forward.ts';
import { SETTINGS } from './intake.ts';
import { runLoad } from './load.ts';
import { BenchProcess } from './process.ts';
import { median, report, round } from './support/report.ts';

const ROUNDS = 5;
/**
 * A round posts to the two servers alternately, in slices of SLICE_MS, so that other load on the machine affects both.
 */
const SLICES = 5;
const SLICE_MS = 500;
const TARGET = 0.9;
/**
 * The numbers of groups that get posts in turn. FEW_GROUPS is that of the intake benchmark. MANY_GROUPS are so many
 * that each group has its own index pages.
 */
const FEW_GROUPS = 50;
const MANY_GROUPS = 1_000;
const FILLED: SeedOptions = { groups: 100_000, messagesPerGroup: 10, hooksPerSecondGroup: 2 };
/**
 * The empty server also needs groups to post into. `seedDatabase` returns only every second group, hence the factor 2.
 */
const EMPTY: SeedOptions = { groups: 2 * (MANY_GROUPS + FORWARD_GROUPS), messagesPerGroup: 0, hooksPerSecondGroup: 0 };
const IDLE_HOOKS = (FILLED.groups / 2) * FILLED.hooksPerSecondGroup;
const STARTS = 5;
/**
 * The wait after a server is ready. By its end, the first full sweep (search for hooks with work) and the next one have
 * completed.
 */
const SWEPT_MS = 6_000;

interface Pair<T> {
  readonly empty: T;
  readonly filled: T;
}

/** The groups of one server that its loads post into: `few` and `many` are paths of webhooks. */
interface Load {
  readonly origin: string;
  readonly few: readonly string[];
  readonly many: readonly string[];
  readonly forward: readonly TestGroup[];
}

/** One start of a server: seconds until it is ready, and its memory then and after the sweeps. */
interface Start {
  readonly readyS: number;
  readonly readyMiB: number;
  readonly sweptMiB: number;
}

/** Rates per second: posts to few and to many groups, and deliveries. */
interface Rates {
  readonly few: number;
  readonly many: number;
  readonly forward: number;
}

/**
 * Measures intake and forward on a database with a million messages, 100,000 groups and 100,000 idle hooks. The
 * baseline is the same server with an empty database.
 */
export async function benchGrowth(): Promise<boolean> {
  const settings = `${SETTINGS}\ndelivery { per-host = ${CONNECTIONS} }`;
  const servers = { empty: await ServerProcess.create(settings), filled: await ServerProcess.create(settings) };
  const stops: (() => Promise<void>)[] = [() => servers.empty.remove(), () => servers.filled.remove()];
  try {
    const sink = await BenchProcess.start('programs/sink.ts');
    stops.unshift(() => sink.process.stop());
    await servers.empty.start();
    await servers.filled.start();
    const loads = {
      empty: loadOf(servers.empty, await seedDatabase(servers.empty, EMPTY)),
      filled: loadOf(servers.filled, await seedDatabase(servers.filled, FILLED)),
    };
    const disk = await measureDisk(servers.filled, FILLED);
    const starts: Pair<Start>[] = [];
    for (let n = 0; n < STARTS; n += 1) starts.push(await restart(servers));
    await registerHooks([...loads.empty.forward, ...loads.filled.forward], sink.first);
    const rates: Pair<Rates>[] = [];
    // The first round is a warm-up of both servers, and does not count.
    for (let n = 0; n <= ROUNDS; n += 1) rates.push(await measureRound(loads, sink.process, n % 2 === 0));
    return print({ starts, rates: rates.slice(1), disk });
  } finally {
    for (const stop of stops) await stop();
  }
}

/**
 * Chooses groups spread evenly over the installation. Forward gets groups of its own, since it registers hooks in them.
 */
function loadOf(server: ServerProcess, groups: readonly TestGroup[]): Load {
  const spread = (count: number, offset: number): TestGroup[] =>
    Array.from({ length: count }, (_, n) => groups[Math.floor(((n + offset) * groups.length) / count)]!);
  const many = spread(MANY_GROUPS, 0).map((group) => new URL(group.webhook).pathname);
  const few = many.filter((_, n) => n % (MANY_GROUPS / FEW_GROUPS) === 0);
  return { origin: server.url, few, many, forward: spread(FORWARD_GROUPS, 0.999) };
}

async function restart({ empty, filled }: Pair<ServerProcess>): Promise<Pair<Start>> {
  await Promise.all([empty.end('SIGTERM'), filled.end('SIGTERM')]);
  const [fresh, grown] = [await timeStart(empty), await timeStart(filled)];
  await wait(SWEPT_MS);
  return {
    empty: { ...fresh, sweptMiB: residentMiB(empty.pid) },
    filled: { ...grown, sweptMiB: residentMiB(filled.pid) },
  };
}

async function timeStart(server: ServerProcess): Promise<Omit<Start, 'sweptMiB'>> {
  const started = performance.now();
  await server.start();
  return { readyS: (performance.now() - started) / 1000, readyMiB: residentMiB(server.pid) };
}

/** Runs each load on both servers, one right after the other. The server that begins changes from round to round. */
async function measureRound(loads: Pair<Load>, sink: BenchProcess, emptyFirst: boolean): Promise<Pair<Rates>> {
  const order: readonly (keyof Pair<Load>)[] = emptyFirst ? ['empty', 'filled'] : ['filled', 'empty'];
  const rates = { empty: { few: 0, many: 0, forward: 0 }, filled: { few: 0, many: 0, forward: 0 } };
  for (const groups of ['few', 'many'] as const) {
    for (let slice = 0; slice < SLICES; slice += 1) {
      for (const side of order) rates[side][groups] += (await intakeRate(loads[side], groups)) / SLICES;
    }
  }
  for (const side of order) rates[side].forward = DELIVERIES / (await timeForward(loads[side].forward, sink));
  return rates;
}

async function intakeRate({ origin, ...groups }: Load, which: 'few' | 'many'): Promise<number> {
  const plan = { origin, paths: groups[which], connections: CONNECTIONS, durationMs: SLICE_MS };
  const { rate, failed } = await runLoad(plan);
  if (failed > 0) throw new Error(`${failed} posts were not answered 200`);
  return rate;
}

interface Measured {
  readonly starts: readonly Pair<Start>[];
  readonly rates: readonly Pair<Rates>[];
  readonly disk: DiskBytes;
}

function print({ starts, rates, disk }: Measured): boolean {
  const ratio = (of: keyof Rates): number => round(median(rates.map((r) => r.filled[of] / r.empty[of])), 3);
  const middle = (side: keyof Pair<Start>, of: keyof Start, digits: number): number =>
    round(median(starts.map((start) => start[side][of])), digits);
  const byRound = rates.map(({ empty, filled }) => ({
    'posts/s empty': round(empty.few),
    'posts/s filled': round(filled.few),
    'posts ratio': round(filled.few / empty.few, 3),
    'spread/s empty': round(empty.many),
    'spread/s filled': round(filled.many),
    'spread ratio': round(filled.many / empty.many, 3),
    'deliveries/s empty': round(empty.forward),
    'deliveries/s filled': round(filled.forward),
    'deliveries ratio': round(filled.forward / empty.forward, 3),
  }));
  const byServer = Object.fromEntries(
    (['empty', 'filled'] as const).map((side) => [
      side,
      {
        'ready after s': middle(side, 'readyS', 2),
        'MiB when ready': middle(side, 'readyMiB', 1),
        'MiB after the sweeps': middle(side, 'sweptMiB', 1),
      },
    ]),
  );
  console.log(`\ngrowth: medians of ${STARTS} starts, empty and filled`);
  console.table(byServer);
  const perHook = starts.map(({ empty, filled }) => ((filled.sweptMiB - empty.sweptMiB) * 1024 * 1024) / IDLE_HOOKS);
  const lowest = Math.min(ratio('few'), ratio('many'), ratio('forward'));
  report(
    'growth: posts to 50 groups, spread over 1,000 groups, and deliveries; 1,000,000 messages, 100,000 groups and 100,000 idle hooks there, against empty',
    byRound,
    {
      bench: 'growth',
      ratio: lowest,
      baseline: 'the same server with an empty database; the lowest of the three ratios',
      rate: round(median(rates.map((r) => r.filled.few))),
      target: TARGET,
      'ratio of intake': ratio('few'),
      'ratio of intake spread over 1,000 groups': ratio('many'),
      'ratio of forward': ratio('forward'),
      'seconds to ready': { empty: middle('empty', 'readyS', 2), filled: middle('filled', 'readyS', 2) },
      'MiB after the sweeps': { empty: middle('empty', 'sweptMiB', 1), filled: middle('filled', 'sweptMiB', 1) },
      'memory bytes per idle hook': round(median(perHook)),
      'disk bytes': { message: round(disk.message), group: round(disk.group), hook: round(disk.hook) },
    },
  );
  return lowest >= TARGET;
}
