import { setTimeout as wait } from 'node:timers/promises';
import { NodePair } from './live/node-pair.ts';
import type { BenchProcess } from './process.ts';
import { cpuSeconds, residentMiB, serverCpuSeconds } from './support/cpu.ts';
import { report, round } from './support/report.ts';

const ACCOUNTS = 12_000;
const BASELINE = 2_000;
/**
 * The measured time, in s. In it each node sends the number of its last presence change sixty times, every 5 s
 * (src/live/presence.ts). It validates its sessions five times, every 60 s (src/live/live.ts).
 */
const WATCH_S = 300;
const EMPTY_S = 60;
const BASELINE_S = 120;
/**
 * Sign-ins a second on each node. Both nodes together stay below the 200 changes of presence a second that a node sends
 * to its clients.
 */
const SIGN_INS_PER_SECOND = 90;
/** Both nodes have to read all accounts as online this soon after the last sign-in (docs/operations.md). */
const SETTLED_MS = 10_000;
/**
 * Both nodes have to read all accounts as offline this soon after all clients have left. An account stays online for 5
 * s, in case its client comes back.
 */
const LEFT_MS = 15_000;
/**
 * The wait for V8 to collect the garbage of the sign-ins and to return its memory. V8 begins to return memory 8 s after
 * a collection.
 */
const REST_MS = 20_000;
const SAMPLE_INTERVAL_MS = 10_000;
const MAX_NAMED_ACCOUNTS = 3;
const MAX_PRINTED_FINDINGS = 20;

const NODES = [0, 1] as const;
const NAMES = ['a', 'b'] as const;

/**
 * The accounts of each node, and the seconds to watch. Smaller numbers (`make bench ONLY=presence ACCOUNTS=300
 * BASELINE=100 SECONDS=30`) are for trials. After fewer than 1,000 sign-ins no server collects its heap, so the figures
 * of memory mean nothing.
 */
interface PresenceSize {
  readonly accounts: number;
  readonly baseline: number;
  readonly watchS: number;
}

/** By node that was read: the number of accounts with clients on node a, and on node b, that it reported as online. */
type OnlineCounts = readonly (readonly number[])[];

/** The measurements of the servers while no client connects or disconnects. */
interface Watch {
  /** The number of accounts of each node. */
  readonly accounts: number;
  /** The time from the last sign-in to the end of the first correct sample; null if no sample was correct in time. */
  readonly settledMs: number | null;
  readonly samples: readonly OnlineCounts[];
  /** The resident memory of each server at each sample. It varies, as V8 chooses when to return unused memory. */
  readonly memoryMiB: readonly (readonly number[])[];
  /** CPU seconds a minute between the samples: first of each server, then of the database. */
  readonly cpu: readonly number[];
}

function presenceSize(env: NodeJS.ProcessEnv): PresenceSize {
  const size = {
    accounts: Number(env['ACCOUNTS'] ?? ACCOUNTS),
    baseline: Number(env['BASELINE'] ?? BASELINE),
    watchS: Number(env['SECONDS'] ?? WATCH_S),
  };
  const isRight = size.baseline >= 1 && size.accounts > size.baseline && size.watchS >= 10;
  if (!isRight) throw new Error('BASELINE is 1 or more, ACCOUNTS is more than BASELINE, SECONDS is 10 or more');
  return size;
}

/**
 * Runs two servers on one database, with accounts that stay online. Both servers have to read all of them as online at
 * all times.
 */
export async function benchPresence(size = presenceSize(process.env)): Promise<boolean> {
  const pair = await NodePair.start(size.accounts);
  try {
    const findings: string[] = [];
    const watch = (accounts: number, seconds: number): Promise<Watch> =>
      watchAccounts(pair, { accounts, seconds: Math.min(seconds, size.watchS), findings });
    const baseline = await pair.createAccounts(size.baseline);
    // The warm-up: V8 collects the garbage of the start, and compiles the code that signs clients in.
    await signIn(baseline);
    for (const clients of baseline) await clients.ask('close');
    const empty = await watch(0, EMPTY_S);
    await signIn(baseline);
    const few = await watch(size.baseline, BASELINE_S);
    await signIn(await pair.createAccounts(size.accounts - size.baseline));
    const all = await watch(size.accounts, size.watchS);
    return print({ empty, few, all }, findings);
  } catch (error) {
    for (const line of pair.logLines) console.error(line);
    throw error;
  } finally {
    await pair.stop();
  }
}

async function signIn(clients: readonly BenchProcess[]): Promise<void> {
  await Promise.all(clients.map((each) => each.ask(`open ${SIGN_INS_PER_SECOND}`)));
}

/** Waits until presence is correct, then watches it for the given time. Adds each wrong sample to `findings`. */
async function watchAccounts(
  pair: NodePair,
  { accounts, seconds, findings }: { accounts: number; seconds: number; findings: string[] },
): Promise<Watch> {
  const begunMs = performance.now();
  const withinMs = accounts === 0 ? LEFT_MS : SETTLED_MS;
  let settledMs: number | null = null;
  while (settledMs === null && performance.now() - begunMs < withinMs) {
    const { wrong } = await takeSample(pair, accounts);
    if (wrong.length === 0) settledMs = performance.now() - begunMs;
    else await wait(100);
  }
  const samples: OnlineCounts[] = [];
  const cpu = [0, 0, 0];
  const memoryMiB: number[][] = NODES.map(() => []);
  let restedMs = 0;
  const startedMs = performance.now();
  for (;;) {
    const { counts, wrong } = await takeSample(pair, accounts);
    samples.push(counts);
    const sinceMs = performance.now() - begunMs;
    findings.push(...wrong.map((each) => `${accounts} accounts a node, after ${round(sinceMs / 1_000)} s: ${each}`));
    const elapsedMs = performance.now() - startedMs;
    if (elapsedMs >= REST_MS + seconds * 1_000) break;
    const before = usedCpuSeconds(pair);
    const fromMs = performance.now();
    await wait(SAMPLE_INTERVAL_MS);
    if (elapsedMs < REST_MS) continue;
    restedMs += performance.now() - fromMs;
    for (const node of NODES) memoryMiB[node]!.push(residentMiB(pair.nodes[node].pid));
    for (const [n, used] of usedCpuSeconds(pair).entries()) cpu[n]! += used - before[n]!;
  }
  return { accounts, settledMs, samples, memoryMiB, cpu: cpu.map((used) => (used * 60_000) / restedMs) };
}

/**
 * Reads the presence from both nodes. `wrong` names the accounts with a wrong state, such as those online after all
 * clients have left.
 */
async function takeSample(pair: NodePair, accounts: number): Promise<{ counts: OnlineCounts; wrong: string[] }> {
  const read = await Promise.all(NODES.map((node) => pair.readPresence(node)));
  const wrong: string[] = [];
  for (const node of NODES) {
    for (const home of NODES) {
      const unexpected = accounts === 0 ? read[node]!.online[home] : read[node]!.away[home];
      if (unexpected.length === 0) continue;
      const named = unexpected.slice(0, MAX_NAMED_ACCOUNTS).join(', ');
      const state = accounts === 0 ? 'online' : 'away';
      wrong.push(
        `node ${NAMES[node]} reads ${unexpected.length} accounts of node ${NAMES[home]} as ${state}: ${named}`,
      );
    }
  }
  return { counts: read.map(({ online }) => online.map(({ length }) => length)), wrong };
}

function usedCpuSeconds({ nodes, databasePid }: NodePair): number[] {
  return [...nodes.map(({ pid }) => cpuSeconds(pid)), serverCpuSeconds(databasePid)];
}

function print(watches: { empty: Watch; few: Watch; all: Watch }, findings: readonly string[]): boolean {
  const { empty, few, all } = watches;
  const stages = [empty, few, all];
  const late = stages.filter(({ settledMs }) => settledMs === null);
  const met = findings.length === 0 && late.length === 0;
  const memory = costOfAccount(watches, (watch) => sum(leastMemoryMiB(watch)) * 1_024);
  const cpu = costOfAccount(watches, (watch) => (watch.cpu[0]! + watch.cpu[1]!) * 1_000);
  for (const { accounts } of late) console.error(`presence: ${accounts} accounts a node did not settle in time`);
  for (const finding of findings.slice(0, MAX_PRINTED_FINDINGS)) console.error(`presence: ${finding}`);
  if (findings.length > MAX_PRINTED_FINDINGS)
    console.error(`presence: and ${findings.length - MAX_PRINTED_FINDINGS} more such samples`);
  const secondsOf = ({ settledMs }: Watch): number | null => (settledMs === null ? null : round(settledMs / 1_000, 2));
  report(`presence: two servers, ${all.accounts} accounts on each`, stages.flatMap(rowsOf), {
    bench: 'presence',
    ratio: cpu.ratio,
    baseline: `CPU of an account of ${few.accounts} a node, at rest and beyond that of empty servers; no target; less is better`,
    rate: 2 * all.accounts,
    'CPU of an account, ms a minute': cpu,
    'memory of an account, KiB': memory,
    'memory MiB, least: a, b': stages.map((watch) => leastMemoryMiB(watch).map((each) => round(each))),
    'CPU s a minute: a, b, database': stages.map(({ cpu }) => cpu.map((each) => round(each, 2))),
    'all seen on both, s after the last sign-in': { few: secondsOf(few), all: secondsOf(all) },
    samples: all.samples.length,
    findings: findings.length,
    met,
  });
  return met;
}

/**
 * The memory or CPU time that one account adds to servers without accounts. Returns it for few accounts, for all, and
 * the ratio of the two.
 */
function costOfAccount(
  { empty, few, all }: { empty: Watch; few: Watch; all: Watch },
  take: (watch: Watch) => number,
): { few: number; all: number; ratio: number } {
  const cost = (watch: Watch): number => (take(watch) - take(empty)) / (2 * watch.accounts);
  return { few: round(cost(few), 2), all: round(cost(all), 2), ratio: round(cost(all) / cost(few), 2) };
}

/** A line of the table for each node. */
function rowsOf(watch: Watch): Record<string, unknown>[] {
  return NODES.map((node) => {
    const counts = (home: number): number[] => watch.samples.map((sample) => sample[node]![home]!);
    const own = counts(node);
    const other = counts(1 - node);
    return {
      'accounts a node': watch.accounts,
      node: NAMES[node],
      'own online, least': Math.min(...own),
      'own, last': own.at(-1),
      "other node's online, least": Math.min(...other),
      "other's, last": other.at(-1),
      'memory MiB, least': round(leastMemoryMiB(watch)[node]!),
      'memory MiB, most': round(Math.max(...watch.memoryMiB[node]!)),
      'CPU s a minute': round(watch.cpu[node]!, 2),
      'settled after s': watch.settledMs === null ? 'not in time' : round(watch.settledMs / 1_000, 2),
    };
  });
}

function leastMemoryMiB({ memoryMiB }: Watch): number[] {
  return memoryMiB.map((values) => Math.min(...values));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, each) => total + each, 0);
}
