import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { LocalBus } from '../../../src/bus/bus.ts';
import { silentLog } from '../../../src/log.ts';
import { REFUSED_POST_RETENTION_DAYS } from '../../../src/storage/retention/refused-post-expiry.ts';
import { Housekeeping } from '../../../src/workers/housekeeping.ts';
import { testConfig } from '../../support/config.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { holdOpen } from '../fixture.ts';

let test1: TestDatabase;
beforeEach(async () => {
  test1 = await createTestDatabase();
  await test1.query((sql) => sql`insert into conversation (kind, title) values ('group', 'G')`);
});
afterEach(() => test1.drop());

const insert = (name: string, age: string): Promise<unknown> =>
  test1.query(
    (sql) => sql`
      insert into refused_post (conversation_id, fingerprint, code, sentence, posts, first_at, last_at)
      values (1, ${name}, 'invalid_input', 'x', 1, now() - interval '1 year', now() - ${age}::text::interval)`,
  );

async function remaining(): Promise<string[]> {
  const rows = await test1.query(
    (sql) => sql<{ name: string }[]>`select fingerprint as name from refused_post order by 1`,
  );
  return rows.map(({ name }) => name);
}

const housekeeping = (): Housekeeping =>
  new Housekeeping({
    database: test1.open(),
    bus: new LocalBus(),
    config: testConfig(test1.target, '/nowhere'),
    node: 'a',
    log: silentLog(),
  });

test('refused posts are removed 7 days after the newest one, but for those that a node adds to', async () => {
  expect(REFUSED_POST_RETENTION_DAYS).toBe(7);
  await insert('new', '6 days 23 hours 59 minutes');
  await insert('old', '7 days 1 minute');
  await insert('locked', '8 days');
  const held = await holdOpen(
    test1.target,
    (tx) => tx`select from refused_post where fingerprint = 'locked' for update`,
  );
  expect(await housekeeping().runOnce()).toMatchObject({ refusedPosts: 1 });
  await held.release();
  expect(await remaining()).toEqual(['locked', 'new']);
});
