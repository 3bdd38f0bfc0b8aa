import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { newHookSecret } from '../../src/model/hook-secret.ts';
import { Sealer } from '../../src/storage/db/sealed.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { Receiver } from '../support/receiver.ts';
import { TestServer } from '../support/server.ts';
import { SECRET } from '../support/server-process.ts';

/** More groups than one query of a sweep returns. */
const GROUPS = 5_300;

let database: TestDatabase;
let receiver: Receiver;
let server: TestServer | null = null;

beforeEach(async () => {
  database = await createTestDatabase();
  receiver = await Receiver.start();
});
afterEach(async () => {
  await server?.stop();
  await receiver.stop();
  await database.drop();
});

/**
 * Inserts undelivered messages of an hour ago, so that no notification and no sweep over the last minute finds them.
 */
async function leavePending(): Promise<void> {
  const secret = new Sealer(SECRET).seal('hook-secret', newHookSecret());
  await database.query((sql) =>
    sql.begin(async (tx) => {
      await tx`insert into account (kind, name) values ('webhook', 'Webhook')`;
      await tx`
        insert into conversation (kind, title) select 'group', 'Group ' || n from generate_series(1, ${GROUPS}::int) n`;
      await tx`
        insert into conversation_head (conversation_id, last_seq, last_rev, last_at)
        select id, 1, 1, now() - interval '1 hour' from conversation`;
      await tx`
        insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
        select c.id, 1, 1, a.id, 'left behind', now() - interval '1 hour' from conversation c cross join account a`;
      await tx`
        insert into reverse_hook (conversation_id, url, secret_sealed, start_seq, cursor)
        select id, ${receiver.url()}, ${secret}, 0, 0 from conversation`;
    }),
  );
}

test('a start delivers what an earlier process left, in however many groups', async () => {
  await leavePending();
  server = await TestServer.start({ delivery: { maxInFlightPerHost: 64 } }, { database });
  const arrivals = await receiver.received(GROUPS);
  expect(new Set(arrivals.map((arrival) => arrival.body.data.group.id)).size).toBe(GROUPS);
  expect(arrivals).toHaveLength(GROUPS);
});
