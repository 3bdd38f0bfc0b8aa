import { expect, test } from '@jest/globals';
import { Apart } from '../../src/delivery/apart.ts';
import type { LaneRow } from '../../src/storage/lanes.ts';
import type { Pool } from '../../src/storage/pool.ts';
import type { DueRetries } from '../../src/storage/retries.ts';

const schedule = { retryMs: [3_600_000], retryAfterMaxMs: 3_600_000 };
const row = { id: 1, retries: 1, retryAt: new Date() } as unknown as LaneRow;
const written = async (): Promise<boolean> => true;

/** A database that answers when the test says so. */
function slowReads(): { pool: Pool; reads: ((answer: DueRetries) => void)[] } {
  const reads: ((answer: DueRetries) => void)[] = [];
  const run = (): Promise<DueRetries> => new Promise((resolve) => reads.push(resolve));
  return { pool: { run } as unknown as Pool, reads };
}

test('what fails while the requests that are due are read is not forgotten', async () => {
  const { pool, reads } = slowReads();
  const apart = new Apart(pool, row, schedule);
  const taken = apart.take(written);
  await new Promise(setImmediate);
  // Its row is not written yet: the answer, which is on its way, cannot hold it.
  apart.add(1, new Date());
  reads[0]!({ due: [{ seq: 1, lastSeq: 1, attempts: 1 } as never], count: 1, nextAt: null });
  await taken;
  apart.done('over');
  expect(apart.hasWork).toBe(true);
  expect(apart.waitMs).toBe(0);
  // The next read says how many there are.
  const next = apart.take(written);
  await new Promise(setImmediate);
  reads[1]!({ due: [{ seq: 2, lastSeq: 2, attempts: 1 } as never], count: 1, nextAt: null });
  expect(await next).toMatchObject({ seq: 2 });
  expect(apart.count).toBe(1);
});
