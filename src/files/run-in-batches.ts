/** The number of items that are processed in parallel. It is small, since no request waits for this work. */
const BATCH_CONCURRENCY = 8;

/**
 * Calls `work` for each item, a batch at a time. After a batch with failures, rejects with the first of them and starts
 * no further batch.
 */
export async function runInBatches<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += BATCH_CONCURRENCY) {
    const results = await Promise.allSettled(items.slice(at, at + BATCH_CONCURRENCY).map(work));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }
}

/**
 * Like `runInBatches`, for work that may fail for single items: resolves to the failures. Rejects if all items of a
 * full batch failed: then something that all of them need is unavailable.
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
