import { setTimeout as wait } from 'node:timers/promises';
import { eventually } from '../test/support/eventually.ts';
import { postJson, type TestGroup } from '../test/support/server.ts';
import { ServerProcess } from '../test/support/server-process.ts';
import { latenciesOf, takeArrivals } from './support/arrivals-log.ts';
import { SETTINGS } from './intake.ts';
import { runLoad } from './load.ts';
import { countOf, metricsUrl } from './support/metrics.ts';
import { BenchProcess } from './process.ts';
import { median, percentile, report, round } from './support/report.ts';
import { postOnSchedule } from './support/schedule.ts';

const ROUNDS = 5;
/** The number of groups, with one hook each. */
const GROUPS = 50;
const CONNECTIONS = 64;
/** The warm-up is long enough for V8 to compile the hot code. */
const WARM_UP_MS = 3_000;
const TOP_MS = 3_000;
const ROUND_MS = 5_000;
/** The wait for late arrivals after the last post of a round. */
const LINGER_MS = 1_000;
const SHARE_OF_TOP = 1 / 3;

/** The measured intervals: post → 200 (`answer`), `sent_at` → arrival (`commit`), and post → arrival (`whole`). */
const WAYS = ['answer', 'commit', 'whole'] as const;
type Way = (typeof WAYS)[number];

interface Quantiles {
  readonly p50: number;
  readonly p99: number;
}

type Side = Readonly<Record<Way, Quantiles>> & {
  /** The number of posts that had not arrived at the end of the round. */
  readonly missing: number;
};

interface Round {
  readonly klatch: Side;
  readonly bare: Side;
}

/** The server, and its webhooks that a load posts to. */
interface Target {
  readonly origin: string;
  readonly paths: readonly string[];
  readonly receivers: BenchProcess;
}

/** Measures latencies at a third of the top rate. The baseline is a bare Express handler that forwards the post. */
export async function benchLatency(): Promise<boolean> {
  const server = await ServerProcess.create(`${SETTINGS}\ndelivery { per-host = ${CONNECTIONS} }`);
  const stops: (() => Promise<void>)[] = [() => server.remove()];
  try {
    const receivers = await BenchProcess.start('programs/arrivals.ts', ['127.0.0.1=healthy']);
    stops.unshift(() => receivers.process.stop());
    const bare = await BenchProcess.start('programs/bare-forwarder.ts', [receivers.first, String(CONNECTIONS)]);
    stops.unshift(() => bare.process.stop());
    await server.start();
    const groups: TestGroup[] = [];
    for (let n = 0; n < GROUPS; n += 1) groups.push(await server.createGroup(`Group ${n}`));
    for (const group of groups) {
      const { status } = await postJson(`${group.webhook}/reverse`, {
        url: `http://127.0.0.1:${receivers.first}/hook`,
      });
      if (status !== 201) throw new Error(`a registration was answered ${status}`);
    }
    const paths = groups.map((group) => new URL(group.webhook).pathname);
    const bareOrigin = `http://127.0.0.1:${bare.first}`;
    const targets = {
      klatch: { origin: server.url, paths, receivers: receivers.process },
      bare: { origin: bareOrigin, paths: groups.map(({ id }) => `/v1/webhooks/${id}`), receivers: receivers.process },
    };
    const metrics = await metricsUrl(server);
    await topRate(targets.klatch, metrics, WARM_UP_MS);
    await runLoad({ ...targets.bare, connections: CONNECTIONS, durationMs: WARM_UP_MS });
    const top = await topRate(targets.klatch, metrics, TOP_MS);
    await takeArrivals(receivers.process);
    const rounds: Round[] = [];
    for (let n = 0; n < ROUNDS; n += 1) {
      const klatch = await measure(targets.klatch, top * SHARE_OF_TOP);
      rounds.push({ klatch, bare: await measure(targets.bare, top * SHARE_OF_TOP) });
    }
    return print(rounds, top);
  } finally {
    for (const stop of stops) await stop();
  }
}

/**
 * Returns the top rate in posts a second: Klatch accepts them from a closed loop and delivers them. The time ends with
 * the last delivery.
 */
async function topRate(target: Target, metrics: string, durationMs: number): Promise<number> {
  const delivered = (): Promise<number> => countOf(metrics, 'klatch_deliveries_total{outcome="delivered"}');
  const before = await delivered();
  const started = performance.now();
  const { answers, failed } = await runLoad({ ...target, connections: CONNECTIONS, durationMs });
  if (failed > 0) throw new Error(`${failed} posts were not answered 200`);
  await eventually(delivered, (count) => count - before >= answers);
  return answers / ((performance.now() - started) / 1_000);
}

async function measure(target: Target, perSecond: number): Promise<Side> {
  const result = await postOnSchedule({ ...target, perSecond, durationMs: ROUND_MS, connections: CONNECTIONS });
  await wait(LINGER_MS);
  const { sincePosted, sinceSent } = latenciesOf(result, await takeArrivals(target.receivers));
  return {
    answer: quantiles(result.posts.map(({ postedMs, answeredMs }) => answeredMs - postedMs)),
    commit: quantiles(sinceSent),
    whole: quantiles(sincePosted),
    missing: sincePosted.filter((ms) => !Number.isFinite(ms)).length,
  };
}

function quantiles(values: readonly number[]): Quantiles {
  return { p50: percentile(values, 0.5), p99: percentile(values, 0.99) };
}

function print(rounds: readonly Round[], top: number): boolean {
  const middle = (side: keyof Round, way: Way, of: keyof Quantiles): number =>
    median(rounds.map((each) => each[side][way][of]));
  const ratio = (way: Way, of: keyof Quantiles): number =>
    round(median(rounds.map(({ klatch, bare }) => klatch[way][of] / bare[way][of])), 2);
  const figures = (way: Way): unknown => ({
    'p50 ms': { klatch: round(middle('klatch', way, 'p50'), 2), bare: round(middle('bare', way, 'p50'), 2) },
    'p99 ms': { klatch: round(middle('klatch', way, 'p99'), 2), bare: round(middle('bare', way, 'p99'), 2) },
    'ratio of p50': ratio(way, 'p50'),
    'ratio of p99': ratio(way, 'p99'),
  });
  const missing = rounds.reduce((sum, { klatch, bare }) => sum + klatch.missing + bare.missing, 0);
  const perSecond = round(top * SHARE_OF_TOP);
  report(
    `latency: ${perSecond} posts/s into ${GROUPS} groups with a hook each, a third of the top rate`,
    rounds.flatMap(rowsOf),
    {
      bench: 'latency',
      ratio: ratio('whole', 'p50'),
      baseline:
        'bare Express handler that posts on by itself with undici; p50 from post to arrival, less is better; no target',
      rate: perSecond,
      'top rate': round(top),
      'post to 200': figures('answer'),
      'commit (sent_at) to arrival': figures('commit'),
      'post to arrival': figures('whole'),
      missing,
    },
  );
  return missing === 0;
}

/** The two lines of the table for a round: one of Klatch, one of the baseline. */
function rowsOf(each: Round): Record<string, unknown>[] {
  const names: Record<Way, string> = { answer: 'post → 200', commit: 'sent_at → arrival', whole: 'post → arrival' };
  return (['klatch', 'bare'] as const).map((side) => ({
    side,
    ...Object.fromEntries(
      WAYS.flatMap((way) => [
        [`${names[way]} p50`, round(each[side][way].p50, 1)],
        [`${names[way]} p99`, round(each[side][way].p99, 1)],
      ]),
    ),
  }));
}
