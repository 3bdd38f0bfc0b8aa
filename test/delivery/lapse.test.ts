import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { holdOpen } from '../storage/fixture.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { DatabaseProxy } from '../support/database-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { Receiver } from '../support/receiver.ts';
import { postJson, TestServer } from '../support/server.ts';

let database: TestDatabase;
let proxy: DatabaseProxy;
let receiver: Receiver;
let server: TestServer;

beforeEach(async () => {
  database = await createTestDatabase();
  proxy = await DatabaseProxy.start(database.target);
  // Attempts are so rare that the limit of unsettled results does not stop the lane.
  receiver = await Receiver.start(() => 500);
  server = await TestServer.start({ postgresql: proxy.address, delivery: { retryDelaysMs: [2_000] } }, { database });
});
afterEach(async () => {
  await server.stop();
  await receiver.stop();
  await proxy.stop();
  await database.drop();
});

/** The remaining time of the leases in ms, by the clock of the database. */
async function leaseMs(): Promise<number> {
  const [row] = await database.query(
    (sql) => sql<{ ms: number }[]>`
      select extract(epoch from min(expires_at) - clock_timestamp())::float8 * 1000 as ms from lease`,
  );
  return row!.ms;
}

test('a lane whose lease has lapsed sends nothing once it is renewed before its row was read again', async () => {
  const group = await server.createGroup();
  const { id } = (await postJson(`${group.webhook}/reverse`, { url: receiver.url() })).body as { id: number };
  await postJson(group.webhook, { text: 'nobody takes this' });
  await receiver.received(1);
  proxy.hold('both');
  await eventually(leaseMs, (ms) => ms < 0);
  // Removes the hook as another node does when the lease has expired; this server gets no notification of it.
  await database.query(
    (sql) => sql`
      update reverse_hook set removed_at = now(), removed_by = 'client', generation = generation + 1 where id = ${id}`,
  );
  const lock = await holdOpen(database.target, (tx) => tx`lock table reverse_hook in access exclusive mode`);
  const before = receiver.arrivals.length;
  await proxy.forward();
  // No other node has claimed the leases, so the server renews them again, while it cannot read the row of the hook.
  await eventually(leaseMs, (ms) => ms > 8_000);
  await eventually(leaseMs, (ms) => ms < 8_000);
  await eventually(leaseMs, (ms) => ms > 8_000);
  expect(receiver.arrivals.length).toBe(before);
  await lock.release();
  const other = await Receiver.start();
  expect((await postJson(`${group.webhook}/reverse`, { url: other.url() })).status).toBe(201);
  for (let n = 1; n <= 10; n += 1) {
    await postJson(group.webhook, { text: 'tick' });
    await other.received(n);
  }
  await other.stop();
  expect(receiver.arrivals.length).toBe(before);
});
