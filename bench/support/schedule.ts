import { setTimeout as wait } from 'node:timers/promises';
import { machineMs } from './clock.ts';
import { HttpConnection, postOf } from './http-connection.ts';

export interface SchedulePlan {
  readonly origin: string;
  /** Posted to in turn, so that each gets an even share of the rate. */
  readonly paths: readonly string[];
  readonly perSecond: number;
  readonly durationMs: number;
  readonly connections: number;
}

/** One post; times of the machine's clock. */
export interface ScheduledPost {
  /** Of the message, as the 200 told it. */
  readonly id: string;
  /** When the schedule gave it out; a wait for a free connection is part of what comes after. */
  readonly postedMs: number;
  readonly answeredMs: number;
}

export interface ScheduleResult {
  readonly posts: readonly ScheduledPost[];
  /** When the last would have been followed by another. */
  readonly endedMs: number;
}

/**
 * Posts at a fixed rate whatever becomes of the posts before (an open loop), so that a server which stalls meets what it
 * would meet. Resolves when all are answered; rejects when one is not answered 200.
 */
export async function postOnSchedule(plan: SchedulePlan): Promise<ScheduleResult> {
  const { hostname, port, host } = new URL(plan.origin);
  const open = (): Promise<HttpConnection> => HttpConnection.open(hostname, Number(port));
  const idle = await Promise.all(Array.from({ length: plan.connections }, open));
  const all = [...idle];
  const total = Math.round((plan.perSecond * plan.durationMs) / 1_000);
  const posts: ScheduledPost[] = [];
  const due: { readonly n: number; readonly postedMs: number }[] = [];
  const done = Promise.withResolvers<void>();
  const post = async (client: HttpConnection, { n, postedMs }: { n: number; postedMs: number }): Promise<void> => {
    const status = await client.ask(postOf(host, plan.paths[n % plan.paths.length]!, n));
    const answeredMs = machineMs();
    if (status !== 200) throw new Error(`a post was answered ${status}`);
    posts.push({ id: (JSON.parse(client.body) as { id: string }).id, postedMs, answeredMs });
    idle.push(client);
    if (posts.length === total) done.resolve();
    else send();
  };
  const send = (): void => {
    while (due.length > 0 && idle.length > 0) post(idle.pop()!, due.shift()!).catch(done.reject);
  };
  try {
    const startedMs = machineMs();
    // Told below; without a listener a failure in between would end the process.
    done.promise.catch(() => {});
    for (let n = 0; n < total;) {
      const nowMs = machineMs();
      for (; n < total && startedMs + (n * 1_000) / plan.perSecond <= nowMs; n += 1) due.push({ n, postedMs: nowMs });
      send();
      await wait(1);
    }
    await done.promise;
    return { posts, endedMs: startedMs + plan.durationMs };
  } finally {
    for (const client of all) client.close();
  }
}
