import { expect, test } from '@jest/globals';
import { RetryQueue } from '../../src/delivery/retry-queue.ts';
import type { Seq } from '../../src/model/ids.ts';
import type { LaneRow } from '../../src/storage/hooks/lanes.ts';
import type { Pool } from '../../src/storage/db/pool.ts';
import type { DueRetries } from '../../src/storage/hooks/retries.ts';
import { TEST_RETRY_POLICY } from './fixtures/retry-policy.ts';

const row = { id: 1, retries: 1, earliestRetryAt: new Date() } as unknown as LaneRow;
const written = async (): Promise<boolean> => true;

/** A database whose reads are answered when the test lets them. */
function slowReads(): { pool: Pool; reads: ((answer: DueRetries) => void)[] } {
  const reads: ((answer: DueRetries) => void)[] = [];
  const run = (): Promise<DueRetries> => new Promise((resolve) => reads.push(resolve));
  return { pool: { run } as unknown as Pool, reads };
}

test('what fails while the requests that are due are read is not forgotten', async () => {
  const { pool, reads } = slowReads();
  const retryQueue = new RetryQueue(pool, row, TEST_RETRY_POLICY);
  const taken = retryQueue.take(written);
  await new Promise(setImmediate);
  // The row of this retry is not written yet, so the read that runs now cannot return it.
  retryQueue.noteAddedRows(1, new Date());
  reads[0]!({ due: [{ seq: 1, lastSeq: 1, attempts: 1 } as never], count: 1, nextAt: null });
  await taken;
  retryQueue.done('finished');
  expect(retryQueue.hasPendingWork).toBe(true);
  expect(retryQueue.waitMs).toBe(0);
  // The next read returns the due rows and the number of all retry rows.
  const next = retryQueue.take(written);
  await new Promise(setImmediate);
  reads[1]!({ due: [{ seq: 2, lastSeq: 2, attempts: 1 } as never], count: 1, nextAt: null });
  expect(await next).toMatchObject({ seq: 2 });
  expect(retryQueue.rowCount).toBe(1);
});

test('what is due is due, however often something was counted twice', () => {
  const retryQueue = new RetryQueue(slowReads().pool, { ...row, retries: 0, earliestRetryAt: null }, TEST_RETRY_POLICY);
  retryQueue.dropReplacedRow({ seq: 1 as Seq, rev: 0 });
  retryQueue.noteAddedRows(1, new Date());
  expect(retryQueue.hasPendingWork).toBe(true);
  expect(retryQueue.waitMs).toBe(0);
});

test('what is held or replaced while it is read is not taken', async () => {
  const { pool, reads } = slowReads();
  const retryQueue = new RetryQueue(pool, { ...row, retries: 3 }, TEST_RETRY_POLICY);
  const taken = retryQueue.take(written, ({ seq }) => seq === 2);
  await new Promise(setImmediate);
  retryQueue.dropReplacedRow({ seq: 1 as Seq, rev: 0 });
  const due = [1, 2, 3].map((seq) => ({ seq, lastSeq: seq, rev: 0, lastRev: 0, attempts: 0 }) as never);
  reads[0]!({ due, count: 3, nextAt: null });
  expect(await taken).toMatchObject({ seq: 3 });
  retryQueue.done('finished');
  // The queue did not take the held row of message 2, and will read it again.
  expect(retryQueue.hasPendingWork).toBe(true);
  expect(retryQueue.waitMs).toBeGreaterThan(0);
});
