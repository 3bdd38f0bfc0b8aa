/** `make bench BASE=<commit>` compares this tree with that commit, in turns on the same machine. */
import { round } from '../support/report.ts';
import { hasSessions, runWhole, Session, type Measurement } from './side.ts';
import { crossoverInterval, isNarrow, judge, ratioInterval, type RatioInterval } from './statistics.ts';
import { checkOut, THIS_TREE, type Tree } from './tree.ts';

/** The benchmarks that can be compared. The others measure memory, or a ratio to a baseline of their own. */
const COMPARABLE = ['intake', 'forward', 'fan-out', 'push'] as const;
/** The rate of this tree must be at least this share of the rate of the former tree. */
const MIN_RATE_RATIO = 0.98;
/**
 * The order of the rounds within a pair of measurements: A is the former tree, B this one. Each pair starts its own
 * servers.
 */
const ORDER = 'ABBAABBA';
/**
 * The order of every second pair, with B first. Measured with the same tree on both sides, the server that started
 * second was between 1.5 % faster and 6 % slower.
 */
const REVERSED_ORDER = 'BAABBAAB';
/** Before a comparison, A is compared with A, for at most this share of the comparison's time. */
const SELF_SHARE = 1 / 3;

interface Pair {
  readonly a: Measurement;
  readonly b: Measurement;
}

interface Ratios {
  /** The ratio of the rates (B to A), without the effect of which server starts first. */
  readonly rate: RatioInterval | null;
  /**
   * The ratio of the rates, with the effect of which server starts first. Reports before November 27, 2026 gave it so.
   */
  readonly plainRate: RatioInterval | null;
  /** The ratio of the CPU times for a unit of work. Above 1, this tree needs more. */
  readonly cpu: RatioInterval | null;
}

/** Compares this tree with a commit; resolves to whether every bar was met. Each comparison takes at most `minutes`. */
export async function compareWith(commit: string, only: readonly string[], minutes: number): Promise<boolean> {
  const names = only.length === 0 ? COMPARABLE : only;
  const unknown = names.filter((name) => !(COMPARABLE as readonly string[]).includes(name));
  if (unknown.length > 0) throw new Error(`${unknown.join(', ')} cannot be compared; ${COMPARABLE.join(', ')} can`);
  const { tree, remove } = checkOut(commit);
  // This process must not end before it has removed its folder, so it ignores Ctrl-C. The benchmarks get Ctrl-C too:
  // when they end, this process fails and cleans up.
  process.on('SIGINT', () => {});
  try {
    let held = true;
    for (const name of names) held = (await compare(name, tree, minutes)) && held;
    return held;
  } finally {
    remove();
  }
}

async function compare(bench: string, base: Tree, minutes: number): Promise<boolean> {
  const bySession = hasSessions(base) && hasSessions(THIS_TREE);
  const how = bySession
    ? `${ORDER} and ${REVERSED_ORDER} in turn, on servers started for each pair`
    : 'whole runs: the commit has no sessions';
  console.log(`\n${bench}: ${base.name} (A) and this tree (B), ${how}`);
  const self = await measure({ bench, a: base, b: base, bySession, minutes: minutes * SELF_SHARE });
  const hasOne = self.rate !== null && self.rate.low <= 1 && self.rate.high >= 1;
  print('A against A', self);
  const ratios = await measure({ bench, a: base, b: THIS_TREE, bySession, minutes });
  const verdict = hasOne ? judge(ratios.rate, MIN_RATE_RATIO) : 'undecided';
  print('B to A', ratios);
  if (!hasOne)
    console.log('A against A does not contain 1: the machine disturbs the measurement, so nothing is decided');
  console.log(`at least ${MIN_RATE_RATIO} of the rate before: ${verdict}`);
  console.log(
    JSON.stringify({ bench, base: base.name, bySession, bar: MIN_RATE_RATIO, verdict, self: self.rate, ...ratios }),
  );
  return verdict === 'held';
}

interface Plan {
  readonly bench: string;
  readonly a: Tree;
  readonly b: Tree;
  readonly bySession: boolean;
  readonly minutes: number;
}

/** Measures pairs until the 95 % interval of the ratio is narrow or the time has passed. */
async function measure({ bench, a, b, bySession, minutes }: Plan): Promise<Ratios> {
  const end = performance.now() + minutes * 60_000;
  const pairs: Pair[] = [];
  for (;;) {
    const pair = bySession
      ? await pairOfSessions(bench, a, b, pairs.length)
      : await pairOfRuns(bench, a, b, pairs.length);
    pairs.push(pair);
    const ratios = ratiosOf(pairs);
    console.error(`  pair ${pairs.length}: ${round(pair.b.rate / pair.a.rate, 4)}; so far ${shown(ratios.rate)}`);
    // The comparison ends only after as many pairs have begun with A as with B, so that the start order favours
    // neither.
    if (pairs.length % 2 === 1) continue;
    if ((ratios.rate !== null && isNarrow(ratios.rate)) || performance.now() >= end) return ratios;
  }
}

/**
 * Measures a pair in sessions. Each pair starts a server of each side, so that differences between starts are part of
 * the comparison.
 */
async function pairOfSessions(bench: string, a: Tree, b: Tree, number: number): Promise<Pair> {
  const order = number % 2 === 0 ? ORDER : REVERSED_ORDER;
  const open = new Map<string, Session>();
  try {
    for (const side of order.slice(0, 2)) open.set(side, await Session.open(side === 'A' ? a : b, bench));
    for (const side of order) await open.get(side)!.round();
    return { a: open.get('A')!.measured, b: open.get('B')!.measured };
  } finally {
    for (const session of open.values()) await session.close();
  }
}

/**
 * Measures a pair by whole runs: A first in one pair and B first in the next, so that a machine that slows down favours
 * neither.
 */
async function pairOfRuns(bench: string, a: Tree, b: Tree, number: number): Promise<Pair> {
  if (number % 2 === 0) return { a: await runWhole(a, bench), b: await runWhole(b, bench) };
  const second = await runWhole(b, bench);
  return { a: await runWhole(a, bench), b: second };
}

function ratiosOf(pairs: readonly Pair[]): Ratios {
  const rates = pairs.map(({ a, b }) => ({ a: a.rate, b: b.rate }));
  return {
    rate: crossoverInterval(rates),
    plainRate: ratioInterval(rates),
    cpu: crossoverInterval(pairs.map(({ a, b }) => ({ a: a.cpu, b: b.cpu }))),
  };
}

function print(title: string, { rate, plainRate, cpu }: Ratios): void {
  console.log(`${title}: rate ${shown(rate)}; CPU time for each ${shown(cpu)}`);
  console.log(`  rate with the effect of the start order: ${shown(plainRate)}`);
}

function shown(interval: RatioInterval | null): string {
  if (interval === null) return 'not known yet';
  const { ratio, low, high, pairs } = interval;
  return `${round(ratio, 4)} (95 %: ${round(low, 4)} to ${round(high, 4)}, ${pairs} pairs)`;
}
