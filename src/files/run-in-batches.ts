/** So many calls of the store at once, for work that nobody waits for. */
const BATCH_CONCURRENCY = 8;

/** Calls `work` for each item, some at once; rejects with the first failure, when those in hand are over. */
export async function runInBatches<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += BATCH_CONCURRENCY) {
    const results = await Promise.allSettled(items.slice(at, at + BATCH_CONCURRENCY).map(work));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }
}

/**
 * The same for what may fail for one item and not for others: resolves to the failures, and rejects where all that were
 * in hand failed, since what they need is away then.
 */
export async function runBatchesCollectingPartialFailures<T>(
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<unknown[]> {
  const failures: unknown[] = [];
  for (let at = 0; at < items.length; at += BATCH_CONCURRENCY) {
    const results = await Promise.allSettled(items.slice(at, at + BATCH_CONCURRENCY).map(work));
    const failed = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
    if (failed.length === BATCH_CONCURRENCY) throw failed[0];
    failures.push(...failed);
  }
  return failures;
}
