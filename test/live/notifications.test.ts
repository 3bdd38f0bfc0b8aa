import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { notify } from '../../src/storage/db/notifications.ts';
import { eventually } from '../support/eventually.ts';
import { createPerson, signIn, type TestPerson } from '../support/people.ts';
import { holdOpen, isWaiting, until } from '../storage/fixture.ts';
import { LiveFixture } from './fixture.ts';

let live: LiveFixture;
let bob: TestPerson;
beforeEach(async () => {
  live = await LiveFixture.start();
  bob = await createPerson(live.server, 'bob');
  await live.add('bob');
});
afterEach(async () => live.stop());

/** Sends a notification as another node does. */
const notifyFromPeer = (payload: string): Promise<unknown> =>
  live.server.database.query((sql) => notify(sql, `another-node ${payload}`));

describe('the end of a session', () => {
  test('closes its connections with 4002 at once, and no other of the account', async () => {
    const ended = await Promise.all(live.urls.map((url) => live.follow(url)));
    const other = await live.follow(live.urls[0], (await signIn(live.server, live.alice.id)).token);
    await notifyFromPeer(`s${live.alice.session}`);
    for (const client of ended) expect(await client.ended()).toBe(4002);
    await other.call('live.ping');
  });

  test('of a deactivated account, or one whose word was lost, is found', async () => {
    const client = await live.follow(live.urls[0], bob.token);
    const lost = await live.follow(live.urls[2]);
    await live.server.database.query((sql) => sql`update account set deactivated_at = now() where id = ${bob.id}`);
    await notifyFromPeer(`u${bob.id}`);
    expect(await client.ended()).toBe(4002);
    await live.server.database.query((sql) => sql`delete from session where id = ${live.alice.session}`);
    await notifyFromPeer('*');
    expect(await lost.ended()).toBe(4002);
  });

  test('is not the end of one whose account was renamed or got another role', async () => {
    const client = await live.follow(live.urls[0], bob.token);
    expect(await client.request('accounts.list')).toMatchObject({ error: { data: { code: 'forbidden' } } });
    await live.server.database.query((sql) => sql`update account set role = 'admin' where id = ${bob.id}`);
    await notifyFromPeer(`u${bob.id}`);
    await eventually(
      () => client.request('accounts.list'),
      ({ error }) => error === undefined,
    );
  });
});

test('a request that waits when its administrator is demoted is judged by the new role', async () => {
  await live.stop();
  // These time-outs are longer than the test holds its locks.
  live = await LiveFixture.start({ postgresql: { lockTimeoutMs: 120_000, databaseCallTimeoutMs: 120_000 } });
  const [root, other] = [
    await createPerson(live.server, 'root', { admin: true }),
    await createPerson(live.server, 'other', { admin: true }),
  ];
  const [client, fence] = [await live.signIn(live.urls[0], root.token), await live.signIn(live.urls[0], other.token)];
  const held = await holdOpen(live.server.database.target, async (tx) => {
    await tx`update account set role = 'user' where id = ${root.id}`;
    await tx`lock table session in access exclusive mode`;
  });
  try {
    await notifyFromPeer(`u${root.id}`);
    await until(live.server.database, (sql) => isWaiting(sql, 'general'));
    const response = client.request('hooks.list-all');
    // If the request did not wait for the new role, it would be answered within these calls.
    for (let n = 0; n < 5; n += 1) await fence.call('hooks.list-all');
    await held.release();
    expect(await response).toMatchObject({ error: { data: { code: 'forbidden' } } });
  } finally {
    await held.release();
  }
});

test('a removal whose word was lost is found when words may have been lost', async () => {
  const client = await live.follow(live.urls[0], bob.token);
  await live.server.database.query((sql) => sql`delete from membership where account_id = ${bob.id}`);
  await notifyFromPeer('*');
  await eventually(
    () => client.of('conversation.left').length,
    (count) => count === 1,
  );
  await live.post('after');
  await client.call('live.ping');
  expect(client.changes(live.group.id)).toEqual([]);
});

describe('what passes', () => {
  test('who writes is told to the others in the conversation, once in a while', async () => {
    const alice = await live.follow(live.urls[0]);
    const other = await live.follow(live.urls[2], bob.token);
    // Repeats the notification until it arrives. It may be lost while a busy machine reopens its session, and no node
    // repeats such a notification.
    await eventually(
      async () => {
        await notifyFromPeer(Array.from({ length: 5 }, () => `y${live.group.id}:${bob.id}`).join(';'));
        return alice.of('typing').length;
      },
      (count) => count > 0,
    );
    await eventually(
      async () => {
        await notifyFromPeer(`d${live.group.id}:${live.alice.id}:0`);
        return alice.of('conversation.read').length;
      },
      (count) => count > 0,
    );
    expect(alice.of('typing')).toEqual([
      {
        jsonrpc: '2.0',
        method: 'typing',
        params: { conversation: live.group.id, account: { id: bob.id, nick: 'bob', name: 'bob' } },
      },
    ]);
    await other.call('live.ping');
    expect(other.of('typing')).toEqual([]);
    expect(other.of('conversation.read')).toEqual([]);
  });

  test('a new name is told to those in a conversation with the account, and to its other devices', async () => {
    const alice = await live.follow(live.urls[0]);
    const other = await live.follow(live.urls[2], bob.token);
    const stranger = await live.follow(live.urls[0], (await createPerson(live.server, 'carol')).token);
    const client = await live.signIn(live.urls[0], bob.token);
    await client.call('profile.update', { nick: 'robert', name: 'Robert' });
    const renamed = {
      jsonrpc: '2.0',
      method: 'account.changed',
      params: { account: { id: bob.id, nick: 'robert', name: 'Robert' } },
    };
    for (const told of [alice, other]) {
      await eventually(
        () => told.of('account.changed'),
        (all) => all.length > 0,
      );
      expect(told.of('account.changed')).toEqual([renamed]);
    }
    await stranger.call('live.ping');
    expect(stranger.of('account.changed')).toEqual([]);
  });

  test('a notification setting is told to the other devices of its account', async () => {
    const device = await live.follow(live.urls[0]);
    const other = await live.follow(live.urls[2], bob.token);
    const client = await live.signIn(live.urls[0]);
    await client.call('notifications.update', { conversation: live.group.id, level: 'nothing' });
    await eventually(
      () => device.of('conversation.updated'),
      (all) => all.length > 0,
    );
    const updated = { jsonrpc: '2.0', method: 'conversation.updated', params: { conversation: live.group.id } };
    expect(device.of('conversation.updated')).toEqual([updated]);
    await other.call('live.ping');
    expect(other.of('conversation.updated')).toEqual([]);
    await eventually(
      async () => {
        await notifyFromPeer(`n${live.group.id}:${bob.id}`);
        return other.of('conversation.updated');
      },
      (all) => all.length > 0,
    );
    expect(device.of('conversation.updated')).toEqual([updated]);
  });

  test('who comes and goes is told to those in a conversation with them, and listed', async () => {
    const alice = await live.follow(live.urls[0]);
    const stranger = await createPerson(live.server, 'carol');
    const carol = await live.follow(live.urls[0], stranger.token);
    const first = await live.follow(live.urls[2], bob.token);
    const second = await live.follow(live.urls[0], bob.token);
    const presenceEvent = (online: boolean) => ({
      jsonrpc: '2.0',
      method: 'presence',
      params: { account: { id: bob.id, nick: 'bob', name: 'bob' }, online },
    });
    const ofBob = () => alice.of('presence').filter(({ params }) => params.account.id === bob.id);
    await eventually(ofBob, (all) => all.length === 1);
    const { accounts } = await alice.call('presence.list', { conversation: live.group.id });
    expect(accounts.map(({ nick }: { nick: string }) => nick)).toEqual(['alice', 'bob']);
    await first.close();
    await second.close();
    await eventually(ofBob, (all) => all.length === 2);
    expect(ofBob()).toEqual([presenceEvent(true), presenceEvent(false)]);
    expect(carol.of('presence')).toEqual([]);
    expect(await carol.request('presence.list', { conversation: live.group.id })).toMatchObject({
      error: { data: { code: 'not_found' } },
    });
    // Another node reports that bob is online.
    await notifyFromPeer(`p7!1!1!${bob.id.toString(36)}`);
    await eventually(ofBob, (all) => all.length === 3);
    expect((await alice.call('presence.list', { conversation: live.group.id })).accounts).toHaveLength(2);
  });
});
