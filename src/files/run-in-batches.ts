/** The number of items in a batch, for which the store is called in parallel. Nobody waits for this work. */
const BATCH_CONCURRENCY = 8;

/** Calls `work` for each item, a batch at a time. Rejects with the first failure when its batch has ended. */
export async function runInBatches<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += BATCH_CONCURRENCY) {
    const results = await Promise.allSettled(items.slice(at, at + BATCH_CONCURRENCY).map(work));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }
}

/**
 * Like `runInBatches`, for work that may fail for single items: resolves to the failures. It rejects if all items of a
 * full batch failed, since what they depend on is then unavailable.
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
