import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { RetryQueue } from '../../src/delivery/retry-queue.ts';
import type { HookId } from '../../src/model/ids.ts';
import type { LaneRow } from '../../src/storage/hooks/lanes.ts';
import { makeGroups, makeHook } from '../storage/fixture.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { TEST_RETRY_POLICY } from './fixtures/retry-policy.ts';

const HOUR_MS = 3_600_000;
const RealDate = Date;

let database: TestDatabase;
let hook: HookId;
beforeEach(async () => {
  database = await createTestDatabase();
  hook = await makeHook(database, (await makeGroups(database, 1))[0]!);
});
afterEach(async () => {
  globalThis.Date = RealDate;
  await database.drop();
});

/**
 * Sets the wall clock of this process, as somebody may set the clock of a machine. The monotonic clock does not change.
 */
function setClock(offsetMs: number): void {
  globalThis.Date = class extends RealDate {
    constructor(ms = RealDate.now() + offsetMs) {
      super(ms);
    }
    static override now = (): number => RealDate.now() + offsetMs;
  } as DateConstructor;
}

test('requests that wait for their time are not kept waiting longer, each time that the clock is set back', async () => {
  const pool = database.open().general;
  const taken: number[] = [];
  const retryPolicy = { ...TEST_RETRY_POLICY, retryDelaysMs: [2 * HOUR_MS], retryAfterMaxMs: 2 * HOUR_MS };
  for (const round of [1, 2]) {
    const times = [50, 100, 150].map((ms) => new Date(Date.now() + ms));
    await database.query(async (sql) => {
      await sql`delete from delivery_retry`;
      for (const [n, at] of times.entries()) {
        await sql`insert into delivery_retry (conversation_id, hook_id, seq, last_seq, attempts, next_at) values ((select conversation_id from reverse_hook where id = ${hook}), ${hook}, ${n + 1}, ${n + 1}, 1, ${at})`;
      }
    });
    const row = { id: hook, retries: 3, earliestRetryAt: times[0]! } as unknown as LaneRow;
    const queue = new RetryQueue(pool, row, retryPolicy);
    setClock(-round * (HOUR_MS / 2));
    while (taken.length < 3 * round) {
      await eventually(
        () => queue.waitMs,
        (ms) => ms === 0,
      );
      const { seq } = (await queue.take(async () => true))!;
      taken.push(seq);
      await database.query((sql) => sql`delete from delivery_retry where seq = ${seq}`);
      queue.done('finished');
    }
  }
  expect(taken).toEqual([1, 2, 3, 1, 2, 3]);
});
