import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { LocalBus } from '../../../src/bus/bus.ts';
import { silentLog } from '../../../src/log.ts';
import type { Database } from '../../../src/storage/database.ts';
import { ALERT_RETENTION_DAYS, removeExpiredAlerts } from '../../../src/storage/retention/alert-expiry.ts';
import { DELETE_PAGE_ROWS } from '../../../src/storage/retention/retention.ts';
import { Housekeeping } from '../../../src/workers/housekeeping.ts';
import { testConfig } from '../../support/config.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { holdOpen } from '../fixture.ts';

let test1: TestDatabase;
let database: Database;
beforeEach(async () => {
  test1 = await createTestDatabase();
  database = test1.open();
});
afterEach(() => test1.drop());

/**
 * Inserts alerts `1`, `2` … of a conversation. The last is the newest, and each is a second older than the next one.
 */
const insertAlerts = (conversation: number, count: number, age = '0 days', state = 'firing'): Promise<unknown> =>
  test1.query(
    (sql) => sql`
      insert into alert (conversation_id, source, key, seq, state, since, updated_at)
      select ${conversation}::int, 'test', ${`${state} ${age} `}::text || n, n, ${state}, now(),
        now() - ${age}::text::interval - (${count} - n) * interval '1 second'
      from generate_series(1, ${count}::int) n`,
  );

const keys = (): Promise<string[]> =>
  test1.query(async (sql) =>
    (await sql<{ key: string }[]>`select conversation_id || ' ' || key as key from alert order by 1`).map(
      ({ key }) => key,
    ),
  );

const remove = (maxAlerts: number): Promise<number> =>
  removeExpiredAlerts(database.general, { maxAlerts, beforeStep: () => Promise.resolve() });

test('alerts go 7 days after they were resolved, and 30 days after anybody told of them', async () => {
  expect(ALERT_RETENTION_DAYS).toEqual({ resolved: 7, firing: 30 });
  const minute = '1 minute';
  for (const age of [`6 days 23 hours 59 minutes`, `7 days ${minute}`]) await insertAlerts(1, 1, age, 'resolved');
  for (const age of [`29 days 23 hours 59 minutes`, `30 days ${minute}`]) await insertAlerts(1, 1, age);
  const config = testConfig(test1.target, '/nowhere');
  const housekeeping = new Housekeeping({ database, bus: new LocalBus(), config, node: 'a', log: silentLog() });
  expect(await housekeeping.runOnce()).toMatchObject({ alerts: 2 });
  expect(await keys()).toEqual(['1 firing 29 days 23 hours 59 minutes 1', '1 resolved 6 days 23 hours 59 minutes 1']);
});

test('of more alerts than a group keeps the oldest go, in pages, and those of other groups stay', async () => {
  const surplus = DELETE_PAGE_ROWS + 3;
  await insertAlerts(1, surplus + 10);
  await insertAlerts(2, 10);
  await insertAlerts(3, 11);
  expect(await remove(10)).toBe(surplus + 1);
  const left = await keys();
  expect(left).toHaveLength(30);
  for (let n = surplus + 1; n <= surplus + 10; n += 1) expect(left).toContain(`1 firing 0 days ${n}`);
  expect(left).not.toContain('3 firing 0 days 1');
  expect(await remove(10)).toBe(0);
});

test('every group is looked at, however many there are', async () => {
  await test1.query(
    (sql) => sql`
      insert into alert (conversation_id, source, key, seq, state, since)
      select c, 'test', k::text, 1, 'firing', now() from generate_series(1, 1001) c, generate_series(1, 2) k`,
  );
  expect(await remove(1)).toBe(1_001);
});

test('what a flush has locked stays, and is not waited for', async () => {
  await insertAlerts(1, 3);
  await insertAlerts(1, 1, '8 days', 'resolved');
  const held = await holdOpen(test1.target, (tx) => tx`select from alert where seq = 1 for no key update`);
  expect(await remove(1)).toBe(1);
  expect(await keys()).toEqual(['1 firing 0 days 1', '1 firing 0 days 3', '1 resolved 8 days 1']);
  await held.release();
  expect(await remove(1)).toBe(2);
  expect(await keys()).toEqual(['1 firing 0 days 3']);
});

test('nothing more is removed once the round is over for this node', async () => {
  await insertAlerts(1, 3);
  const over = (): Promise<void> => Promise.reject(new Error('over'));
  await expect(removeExpiredAlerts(database.general, { maxAlerts: 1, beforeStep: over })).rejects.toThrow('over');
  expect(await keys()).toHaveLength(3);
});
