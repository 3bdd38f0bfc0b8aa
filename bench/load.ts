import { Pool } from 'undici';

/** What a closed loop of posts saw. Times in ms. */
export interface LoadResult {
  /** Answers a second. */
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
  /** Answers that were not 200. */
  readonly failed: number;
}

export interface LoadPlan {
  readonly origin: string;
  readonly paths: readonly string[];
  readonly connections: number;
  readonly durationMs: number;
}

/** Posts over a fixed number of connections, each sending its next request when it has its answer. */
export async function runLoad(plan: LoadPlan): Promise<LoadResult> {
  const pool = new Pool(plan.origin, { connections: plan.connections, pipelining: 1 });
  const latencies: number[] = [];
  let sent = 0;
  let failed = 0;
  const started = performance.now();
  const end = started + plan.durationMs;
  const connection = async (): Promise<void> => {
    while (performance.now() < end) {
      const n = sent++;
      const asked = performance.now();
      const response = await pool.request({
        method: 'POST',
        path: plan.paths[n % plan.paths.length]!,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ text: `message ${n}: load on web-${n % 7} is above its threshold` }),
      });
      await response.body.dump();
      if (response.statusCode !== 200) failed += 1;
      latencies.push(performance.now() - asked);
    }
  };
  await Promise.all(Array.from({ length: plan.connections }, connection));
  const seconds = (performance.now() - started) / 1000;
  await pool.close();
  const sorted = Float64Array.from(latencies).sort();
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { rate: latencies.length / seconds, p50: at(0.5), p99: at(0.99), failed };
}
