import { HttpConnection, postOf } from './support/http-connection.ts';
import { percentile } from './support/report.ts';

/** The results of a closed loop of posts. Times in ms. */
export interface LoadResult {
  readonly answers: number;
  /** The rate, in answers a second. */
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
  /** The number of answers other than 200. */
  readonly failed: number;
}

export interface LoadPlan {
  readonly origin: string;
  readonly paths: readonly string[];
  readonly connections: number;
  readonly durationMs: number;
}

/** Posts over a fixed number of connections. Each sends its next request after the answer to its previous one. */
export async function runLoad(plan: LoadPlan): Promise<LoadResult> {
  const { hostname, port, host } = new URL(plan.origin);
  const latencies: number[] = [];
  let sent = 0;
  let failed = 0;
  const started = performance.now();
  const end = started + plan.durationMs;
  const connection = async (): Promise<void> => {
    const client = await HttpConnection.open(hostname, Number(port));
    while (performance.now() < end) {
      const n = sent++;
      const asked = performance.now();
      const status = await client.ask(postOf(host, plan.paths[n % plan.paths.length]!, n));
      if (status !== 200) failed += 1;
      latencies.push(performance.now() - asked);
    }
    client.close();
  };
  await Promise.all(Array.from({ length: plan.connections }, connection));
  const seconds = (performance.now() - started) / 1000;
  const [p50, p99] = [percentile(latencies, 0.5), percentile(latencies, 0.99)];
  return { answers: latencies.length, rate: latencies.length / seconds, p50, p99, failed };
}

/** Posts `count` messages to one URL over `connections` connections. Rejects when one is not answered 200. */
export async function postMessages(url: string, count: number, connections: number): Promise<void> {
  const { hostname, port, host, pathname } = new URL(url);
  let sent = 0;
  const connection = async (): Promise<void> => {
    const client = await HttpConnection.open(hostname, Number(port));
    while (sent < count) {
      const status = await client.ask(postOf(host, pathname, sent++));
      if (status !== 200) throw new Error(`a post was answered ${status}`);
    }
    client.close();
  };
  await Promise.all(Array.from({ length: connections }, connection));
}
