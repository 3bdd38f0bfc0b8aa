import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { EphemeralEvents } from '../../src/live/ephemeral-events.ts';
import type { LiveSessions } from '../../src/live/live-sessions.ts';
import { silentLog } from '../../src/log.ts';
import type { AccountId } from '../../src/model/ids.ts';
import { makeGroups, makeMembers } from '../storage/fixture.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { DelayedPool, SubscriptionHarness, type Client } from './subscription-harness.ts';

let database: TestDatabase;
let harness: SubscriptionHarness;
let pool: DelayedPool;
let events: EphemeralEvents;
let ann: AccountId;
let client: Client;

beforeEach(async () => {
  database = await createTestDatabase();
  const group = (await makeGroups(database, 1))[0]!;
  const [first, bob] = (await makeMembers(database, group, ['ann', 'bob'])) as [AccountId, AccountId];
  ann = first;
  harness = new SubscriptionHarness(database, group);
  client = await harness.follow(bob);
  pool = new DelayedPool(database);
  const options = { bus: harness.bus, pool: pool.pool, feeds: harness.feeds, log: silentLog() };
  events = new EphemeralEvents({ ...options, sessions: {} as LiveSessions });
});
afterEach(async () => {
  pool.release();
  harness.stop();
  await database.drop();
});

const told = (): unknown[] => client.sent.flatMap(({ method, params }) => (method === 'presence' ? [params] : []));
const annIs = (online: boolean): unknown => expect.objectContaining({ online });

test('somebody who leaves before it was told that they came is told to have left: others may have listed them', async () => {
  events.queuePresenceChange(ann, true);
  events.queuePresenceChange(ann, false);
  events.startSendingAccountChanges();
  await eventually(told, (all) => all.length > 0);
  expect(told()).toEqual([annIs(false)]);
});

test('a change that comes while an older one is being sent is sent after it', async () => {
  pool.hold();
  events.queuePresenceChange(ann, true);
  events.startSendingAccountChanges();
  events.queuePresenceChange(ann, false);
  await eventually(
    () => pool.held,
    (held) => held === 1,
  );
  pool.release();
  await eventually(told, (all) => all.length === 1);
  await eventually(
    () => {
      events.startSendingAccountChanges();
      return told();
    },
    (all) => all.length === 2,
  );
  expect(told()).toEqual([annIs(true), annIs(false)]);
});

test('a new name and a coming that wait together are both told, also where the first attempt fails', async () => {
  events.start();
  pool.hold();
  events.queuePresenceChange(ann, true);
  harness.bus.publish('accountsChanged', [ann]);
  events.startSendingAccountChanges();
  await eventually(
    () => pool.held,
    (held) => held === 1,
  );
  pool.failOne();
  await eventually(
    () => {
      pool.release();
      events.startSendingAccountChanges();
      return client.methods;
    },
    (methods) => methods.length === 2,
  );
  events.stop();
  expect(client.methods).toEqual(['account.changed', 'presence']);
  expect(told()).toEqual([annIs(true)]);
});
