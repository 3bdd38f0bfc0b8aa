import { setTimeout as wait } from 'node:timers/promises';
import { machineMs } from './clock.ts';
import { HttpConnection, postOf } from './http-connection.ts';

export interface SchedulePlan {
  readonly origin: string;
  /** The paths that get posts in turn, so that each gets an equal share of the rate. */
  readonly paths: readonly string[];
  readonly perSecond: number;
  readonly durationMs: number;
  readonly connections: number;
}

/** One post, with times of the machine's monotonic clock. */
export interface ScheduledPost {
  /** The id of the message, from the answer 200. */
  readonly id: string;
  /** The time at which the schedule released the post. The wait for a free connection counts as latency. */
  readonly postedMs: number;
  readonly answeredMs: number;
}

export interface ScheduleResult {
  readonly posts: readonly ScheduledPost[];
  /** The time at which the next post after the last one would have been due. */
  readonly endedMs: number;
}

/**
 * Posts at a fixed rate, without waiting for earlier answers (an open loop), so that a server that stalls has to catch
 * up. Resolves when all posts are answered; rejects when one is not answered 200.
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
  const reopen = async (): Promise<HttpConnection> => {
    const client = await open();
    all.push(client);
    return client;
  };
  const post = async (taken: HttpConnection, { n, postedMs }: { n: number; postedMs: number }): Promise<void> => {
    // A connection that many posts did not need was idle, so the server may have closed it.
    const client = taken.isOpen ? taken : await reopen();
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
    // The await at the end reports a failure. Without this handler, a rejection before that await would end the
    // process.
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
