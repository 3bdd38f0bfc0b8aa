import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createWebPushKeys } from '../../src/config/keys/web-push-keys.ts';
import { LiveClient } from '../live/client.ts';
import { callAs } from '../support/call.ts';
import { eventually } from '../support/eventually.ts';
import { createPerson, signIn, type TestPerson } from '../support/people.ts';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';
import { WebPushReceiver } from './web-push-receiver.ts';

// VAPID keys in the form in which `klatch setup` makes them.
const keys = createWebPushKeys();

let service: WebPushReceiver;
let server: TestServer;
let group: TestGroup;
let alice: TestPerson;
beforeEach(async () => {
  service = await WebPushReceiver.start(keys.public);
  server = await TestServer.start({
    webPush: { ...keys, vapidSubject: 'mailto:admin@klatch.example' },
    delivery: { allow: ['loopback'] },
  });
  group = await server.createGroup('Operations');
  alice = await createPerson(server, 'alice');
  await server.operate('groups.add-member', { group: group.id, user: 'alice' });
});
afterEach(async () => {
  await server.stop();
  await service.stop();
});

async function register(name: string, session: { token: string } = alice): Promise<number> {
  const subscription = await service.subscribe(name);
  return (await callAs(server, session, 'devices.register', { kind: 'web', subscription, label: name })).id;
}

const post = async (text: string): Promise<void> => {
  expect(await postJson(group.webhook, { text })).toMatchObject({ status: 200 });
};
/** The pushes of each browser, without their senders, in any order. */
const told = (): string[] =>
  service.pushes
    .map(({ path, body }) => `${path.slice('/push/'.length)}: ${body.text.replace(/^[^:]*: /, '')}`)
    .toSorted();
const toldIs = (...expected: string[]): Promise<unknown> =>
  eventually(told, (all) => JSON.stringify(all) === JSON.stringify(expected.toSorted()));
const waitIs = (count: number): Promise<unknown> =>
  eventually(
    () => server.database.query((sql) => sql`select from push_pending`),
    (rows) => rows.length === count,
  );

test('browsers are told from when they are registered on, with keys as setup makes them', async () => {
  await post('nobody hears this');
  await register('desk');
  await post('the disk is full');
  await toldIs('desk: the disk is full');
  expect(service.faults).toEqual([]);
  expect(service.pushes[0]!.body).toMatchObject({ title: 'Operations', conversation: group.id, last_seq: 2 });
});

test('who has a connection in the foreground is not told, and in the background is', async () => {
  await register('desk');
  const client = await LiveClient.signIn(server.liveUrl, alice.token);
  try {
    await post('seen');
    await waitIs(1);
    expect(told()).toEqual([]);
    await callAs(server, alice, 'messages.mark-read', { conversation: group.id, seq: 1 });
    await waitIs(0);
    await client.call('live.foreground', { foreground: false });
    // Alice counts as offline from the server's next check of presence on.
    await eventually(
      async () => (await client.call('presence.list', { conversation: group.id })).accounts.length as number,
      (count) => count === 0,
    );
    await post('not seen');
    await toldIs('desk: not seen');
    await client.call('live.foreground', { foreground: true });
    await post('seen again');
    await waitIs(1);
    expect(told()).toEqual(['desk: not seen']);
  } finally {
    await client.close();
  }
});

test('who wants mentions is told of those alone, and who mutes a conversation of nothing', async () => {
  await register('desk');
  const set = (input: object): Promise<unknown> =>
    callAs(server, alice, 'notifications.update', { conversation: group.id, ...input });
  await set({ level: 'mentions' });
  await post('to nobody in particular');
  await post('@alice look');
  await toldIs('desk: @alice look');
  await callAs(server, alice, 'messages.mark-read', { conversation: group.id, seq: 2 });
  await set({ level: 'all', muted_until: '2090-01-01T00:00:00Z' });
  await post('into the night');
  await eventually(
    () => server.database.query((sql) => sql<{ seq: number }[]>`select pushed_seq as seq from push_cursor`),
    ([cursor]) => cursor?.seq === 3,
  );
  await set({ muted_until: null });
  await post('good morning');
  await toldIs('desk: @alice look', 'desk: good morning');
});

test('each device is told until its session ends or it is removed', async () => {
  const other = await signIn(server, alice.id);
  await register('desk');
  await register('phone', other);
  await post('one');
  await toldIs('desk: one', 'phone: one');
  await callAs(server, alice, 'sessions.end', { session: other.session });
  await callAs(server, alice, 'messages.mark-read', { conversation: group.id, seq: 1 });
  await post('two');
  await toldIs('desk: one', 'desk: two', 'phone: one');
});

test('push.test reaches each device past the queue, and one that is not known any more is removed', async () => {
  const desk = await register('desk');
  const phone = await register('phone');
  service.script = ({ path }) => (path.endsWith('phone') ? 410 : 201);
  const { devices } = await server.operate<{ devices: unknown[] }>('push.test', { user: 'alice' });
  expect(devices).toEqual([
    { device: desk, kind: 'web', label: 'desk', outcome: 'delivered', category: null, code: null },
    { device: phone, kind: 'web', label: 'phone', outcome: 'unregistered', category: 'unregistered', code: 410 },
  ]);
  expect(service.pushes[0]!.body).toMatchObject({ title: 'Klatch under test', text: expect.stringMatching(/test/) });
  expect((await callAs(server, alice, 'devices.list')).devices).toMatchObject([{ id: desk }]);
  const { vendors, events } = await server.operate<{ vendors: unknown[]; events: unknown[] }>('push.status');
  expect(vendors[2]).toMatchObject({ kind: 'web', configured: true, problem: null, devices: 1 });
  expect(events).toMatchObject([{ user: 'alice', kind: 'web', event: 'removed', category: 'unregistered', code: 410 }]);
});
