import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { silentLog } from '../../src/log.ts';
import type { AccountId, DeviceId, Seq } from '../../src/model/ids.ts';
import { DeviceTokenCache } from '../../src/push/device-tokens.ts';
import { VendorQueue } from '../../src/push/vendor-queue.ts';
import type { Pool } from '../../src/storage/db/pool.ts';
import { Sealer } from '../../src/storage/db/sealed.ts';
import { testConfig } from '../support/config.ts';

import { HttpVendor } from './http-vendor.ts';
import { PushStage, SECRET } from './stage.ts';

let stage: PushStage;
let alice: AccountId;
beforeAll(async () => {
  stage = await PushStage.open();
});
beforeEach(async () => {
  [alice] = (await stage.members('alice')) as [AccountId];
});
afterEach(() => stage.clear());
afterAll(() => stage.close());

/** Queues the rows of all these messages, and then sends them after one claim. */
async function together(accounts: readonly AccountId[], post: () => Promise<Seq>): Promise<void> {
  for (const account of accounts) stage.foreground.add(account);
  const queue = stage.start();
  const last = await post();
  await stage.setForeground(last);
  await queue.stop(1_000);
  stage.foreground.clear();
  await stage.database.query((sql) => sql`update push_pending set next_at = now()`);
  stage.start();
  await stage.settled(last);
}

test('of the messages of one conversation each device is told of those that are for its owner', async () => {
  const [bob, carol, dave, erin] = await stage.members('bob', 'carol', 'dave', 'erin');
  const people = { alice, bob: bob!, carol: carol!, dave: dave!, erin: erin! };
  const tokens = new Map<string, string>();
  for (const [name, account] of Object.entries(people)) tokens.set((await stage.device(account)).token, name);
  await stage.database.query((sql) => sql`insert into block (account_id, blocked_id) values (${bob!}, ${carol!})`);
  await together(Object.values(people), async () => {
    await stage.post('one');
    await stage.post('two', carol);
    await stage.post('three');
    const last = await stage.post('four', carol);
    // Carol's read position does not cover her own messages, and her row does. The queue must not notify her of them.
    await stage.read(carol!, 0 as Seq, { silent: true });
    await stage.database.query(
      (sql) => sql`
      insert into push_pending (device_id, conversation_id, kind, first_seq, last_seq, next_at)
      select d.id, ${stage.group.id}, 'web', 1, 4, now() + interval '1 hour' from device d where d.account_id = ${carol!}
      on conflict (device_id, conversation_id) do update set first_seq = 1`,
    );
    await stage.read(dave!, 3 as Seq, { silent: true });
    await stage.read(erin!, last, { silent: true });
    return last;
  });
  const told = stage.got().map(({ token, note }) => [tokens.get(token), note.text?.split(': ')[1]]);
  expect(Object.fromEntries(told)).toEqual({ alice: 'four', bob: 'three', carol: 'three', dave: 'four' });
  expect(told).toHaveLength(4);
});

test('a row whose device has gone in the middle is over', async () => {
  await stage.device(alice);
  await stage.database.query(
    (sql) => sql`
    insert into push_pending (device_id, conversation_id, kind, first_seq, last_seq)
    values (123456, ${stage.group.id}, 'web', 1, 1)`,
  );
  stage.start();
  await stage.waits(0);
  expect(stage.got()).toEqual([]);
  expect(await stage.logged()).toEqual([]);
});

test('what waits for a device goes with it and with its session', async () => {
  const [gone, signedOut] = [await stage.device(alice), await stage.device(alice)];
  await stage.device(alice);
  stage.foreground.add(alice);
  stage.start();
  await stage.post('hello');
  await stage.waits(3);
  await stage.database.query((sql) => sql`delete from device where id = ${gone.id}`);
  expect(await stage.pending()).toHaveLength(2);
  await stage.database.query(
    (sql) => sql`delete from session where id = (select session_id from device where id = ${signedOut.id})`,
  );
  expect(await stage.pending()).toHaveLength(1);
});

/** A queue whose first claim gets the answer of the database only when the test allows it. */
function gatedQueue() {
  const { general } = stage.pools;
  const [looked, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const run: Pool['run'] = async (work) => {
    const found = await general.run(work);
    looked.resolve();
    await goOn.promise;
    return found;
  };
  const queue = new VendorQueue(new HttpVendor('web', () => stage.service('web').url(''), 5_000), {
    pool: { run } as Pool,
    tokens: new DeviceTokenCache(new Sealer(SECRET)),
    config: testConfig(stage.database.target, '/nowhere').push,
    projectName: 'Klatch under test',
    isForeground: () => false,
    maxPresenceStalenessMs: 60_000,
    log: silentLog(),
  });
  return { queue, looked: looked.promise, goOn: () => goOn.resolve() };
}

async function insertRow(device: DeviceId): Promise<void> {
  await stage.database.query(
    (sql) => sql`
    insert into push_pending (device_id, conversation_id, kind, first_seq, last_seq)
    values (${device}, ${stage.group.id}, 'web', 1, 1)`,
  );
}

test('a row that is made while the database is looked at is taken by the next look', async () => {
  const { id } = await stage.device(alice);
  await stage.post('hello');
  const { queue, looked, goOn } = gatedQueue();
  queue.start();
  try {
    await looked;
    await insertRow(id);
    queue.wake();
    goOn();
    // Without a notification, the queue would read again only after 15 s.
    await stage.waits(0);
  } finally {
    goOn();
    await queue.stop();
  }
  expect(stage.told()).toEqual([['web-1', 'Sender 0: hello']]);
});

test('what a look brings after the stop is sent and settled before that is over', async () => {
  const { id } = await stage.device(alice);
  await stage.post('hello');
  await insertRow(id);
  const { queue, looked, goOn } = gatedQueue();
  queue.start();
  await looked;
  const stopped = queue.stop();
  await new Promise(setImmediate);
  goOn();
  await stopped;
  expect(stage.told()).toEqual([['web-1', 'Sender 0: hello']]);
  expect(await stage.pending()).toEqual([]);
});
