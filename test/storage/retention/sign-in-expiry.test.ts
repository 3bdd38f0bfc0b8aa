import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { LocalBus } from '../../../src/bus/bus.ts';
import { Housekeeping } from '../../../src/workers/housekeeping.ts';
import { silentLog } from '../../../src/log.ts';
import { Pool } from '../../../src/storage/db/pool.ts';
import { testConfig } from '../../support/config.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = new Pool(database.target, { name: 'test', maxConnections: 1, maxWaitingCalls: 1, timeoutMs: 10_000 });
});
afterAll(async () => {
  pool.stop();
  await database.drop();
});

test('what is over of signing in is removed, and what still counts or holds stays', async () => {
  await pool.run(async (sql) => {
    await sql`insert into account (kind, nick, name) values ('user', 'alice', 'Alice')`;
    await sql`
      insert into activation (transaction_hash, provider, kind, address, source_hash, network_hash, sends_code,
        attempts_left, sent_at, expires_at)
      select name, 'email', 'email', 'a@example.org', 's', 's', true, 3, now() - sent, now() - sent + valid from (values
        ('old', interval '26 hours', interval '24 hours'),
        ('used', interval '2 hours', interval '0'),
        ('fresh', interval '1 hour', interval '24 hours')) v (name, sent, valid)`;
    await sql`
      insert into sign_in_link (token_hash, account_id, expires_at)
      select 'old', id, now() - interval '1 second' from account union all
      select 'fresh', id, now() + interval '1 hour' from account`;
    await sql`
      insert into session (account_id, token_hash, label, expires_at)
      select id, 'old', 'x', now() - interval '1 second' from account union all
      select id, 'fresh', 'x', now() + interval '1 hour' from account union all
      select id, 'endless', 'x', null from account`;
  });
  const config = testConfig(database.target, '/nowhere');
  const services = { database: { general: pool } as never, bus: new LocalBus(), config, node: 'a', log: silentLog() };
  expect(await new Housekeeping(services).runOnce()).toMatchObject({ activations: 1, links: 1, sessions: 1 });
  const left = await pool.run(
    (sql) => sql<{ name: string }[]>`
      select transaction_hash as name from activation union all select token_hash from sign_in_link
      union all select token_hash from session order by 1`,
  );
  expect(left.map(({ name }) => name)).toEqual(['endless', 'fresh', 'fresh', 'fresh', 'used']);
});
