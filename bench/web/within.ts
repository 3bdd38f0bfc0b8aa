import { setTimeout as wait } from 'node:timers/promises';

/** Resolves or rejects as `work` does. Rejects if `work` takes longer than `seconds`, since a page may hang. */
export async function within<T>(seconds: number, what: string, work: Promise<T>): Promise<T> {
  const done = new AbortController();
  const timeout = wait(seconds * 1_000, undefined, { signal: done.signal }).then(() => {
    throw new Error(`${what}: not done within ${seconds} s`);
  });
  // If `work` ends first, nothing else handles the rejection of the timeout.
  timeout.catch(() => {});
  try {
    return await Promise.race([work, timeout]);
  } finally {
    done.abort();
  }
}
