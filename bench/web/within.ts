import { setTimeout as wait } from 'node:timers/promises';

/** Resolves or rejects as `work` does; rejects when that takes longer. A page that hangs must not hang the benchmark. */
export async function within<T>(seconds: number, what: string, work: Promise<T>): Promise<T> {
  const done = new AbortController();
  const timeout = wait(seconds * 1_000, undefined, { signal: done.signal }).then(() => {
    throw new Error(`${what}: not done within ${seconds} s`);
  });
  // The work may end first, and nobody waits for this one then.
  timeout.catch(() => {});
  try {
    return await Promise.race([work, timeout]);
  } finally {
    done.abort();
  }
}
