/** The number of items that are processed in parallel. It is small, since no request waits for this work. */
const BATCH_CONCURRENCY = 8;

/**
 * Calls `work` for each item, a batch at a time. After a batch with failures, rejects with the first of them and starts
 * no further batch.
 */
export async function runInBatches<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let batchStart = 0; batchStart < items.length; batchStart += BATCH_CONCURRENCY) {
    const results = await Promise.allSettled(items.slice(batchStart, batchStart + BATCH_CONCURRENCY).map(work));
    const firstRejection = results.find((result) => result.status === 'rejected');
    if (firstRejection !== undefined) throw firstRejection.reason;
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
  for (let batchStart = 0; batchStart < items.length; batchStart += BATCH_CONCURRENCY) {
    const results = await Promise.allSettled(items.slice(batchStart, batchStart + BATCH_CONCURRENCY).map(work));
    const batchFailures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
    if (batchFailures.length === BATCH_CONCURRENCY) throw batchFailures[0];
    failures.push(...batchFailures);
  }
  return failures;
}
