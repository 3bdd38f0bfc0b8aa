/** Parallel calls of the store, for work that nobody waits for. */
const BATCH_CONCURRENCY = 8;

/** Calls `work` for each item, some at once; rejects with the first failure, when the current batch has ended. */
export async function runInBatches<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += BATCH_CONCURRENCY) {
    const results = await Promise.allSettled(items.slice(at, at + BATCH_CONCURRENCY).map(work));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }
}

/**
 * Like `runInBatches`, for work that may fail for single items: resolves to the failures. It rejects if a whole batch
 * failed, since its dependency is then unavailable.
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
