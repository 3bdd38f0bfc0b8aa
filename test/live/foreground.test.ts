import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { PresenceUpdate } from '../../src/bus/bus.ts';
import { PostgresBus } from '../../src/bus/postgres-bus.ts';
import { silentLog } from '../../src/log.ts';
import { notify } from '../../src/storage/db/notifications.ts';
import { eventually } from '../support/eventually.ts';
import { createPerson, signIn, type TestPerson } from '../support/people.ts';
import { TestServer } from '../support/server.ts';
import { LiveClient } from './client.ts';
import { LiveFixture } from './fixture.ts';

let live: LiveFixture;
let bob: TestPerson;
let alice: LiveClient;
let bus: PostgresBus;
const updates: PresenceUpdate[] = [];
let people = 0;
beforeAll(async () => {
  live = await LiveFixture.start();
  // This bus acts as another node, which receives the notifications of the server.
  bus = new PostgresBus(live.server.database.open(), silentLog(), { node: 'listener' });
  const isListening = new Promise<void>((resolve) => void bus.subscribe({ resync: () => resolve() }));
  bus.subscribe({ presence: ({ update }) => void updates.push(update) });
  bus.start();
  await isListening;
});
beforeEach(async () => {
  bob = await createPerson(live.server, `bob-${(people += 1)}`);
  await live.add(bob.nick);
  alice = await live.follow(live.urls[0]);
});
afterAll(async () => {
  bus.stop();
  await live.stop();
});

const seenByAlice = (): boolean[] =>
  alice.of('presence').flatMap(({ params }) => (params.account.id === bob.id ? [params.online as boolean] : []));
const seenByPeer = (): boolean[] =>
  updates.flatMap((each) => (each.kind === 'change' && each.accountId === bob.id ? [each.online] : []));
const eventuallySeen = (...expected: boolean[]): Promise<boolean[]> =>
  eventually(seenByAlice, (all) => JSON.stringify(all) === JSON.stringify(expected));
const isListed = async (): Promise<boolean> =>
  (await alice.call('presence.list', { conversation: live.group.id })).accounts.some(
    ({ id }: { id: number }) => id === bob.id,
  );
const setForeground = (client: LiveClient, foreground: boolean): Promise<unknown> =>
  client.call('live.foreground', { foreground });

test('a connection in the background is away, here and on other nodes, and back when it says so', async () => {
  const client = await live.follow(live.urls[2], bob.token);
  await eventuallySeen(true);
  expect(await isListed()).toBe(true);
  expect(await setForeground(client, false)).toEqual({ foreground: false });
  await eventuallySeen(true, false);
  expect(await isListed()).toBe(false);
  // A client in the background still gets messages.
  await live.post('while away');
  await eventually(
    () => client.changes(live.group.id),
    (changes) => changes.length > 0,
  );
  expect(await setForeground(client, true)).toEqual({ foreground: true });
  await eventuallySeen(true, false, true);
  expect(await isListed()).toBe(true);
  await eventually(seenByPeer, (all) => all.length === 3);
  expect(seenByPeer()).toEqual([true, false, true]);
});

test('one connection in the foreground is enough, whichever it is', async () => {
  const phone = await live.follow(live.urls[2], bob.token);
  const desk = await live.follow(live.urls[1], (await signIn(live.server, bob.id)).token);
  await eventuallySeen(true);
  await setForeground(phone, false);
  await setForeground(phone, false);
  expect(await isListed()).toBe(true);
  await setForeground(desk, false);
  await eventuallySeen(true, false);
  await setForeground(phone, true);
  await setForeground(desk, true);
  await setForeground(desk, true);
  await eventuallySeen(true, false, true);
  await desk.close();
  await setForeground(phone, false);
  await eventuallySeen(true, false, true, false);
  // A session in the background does not count when it ends. A new session is in the foreground.
  await phone.close();
  await live.follow(live.urls[0], bob.token);
  await eventuallySeen(true, false, true, false, true);
  expect(await isListed()).toBe(true);
});

test('who is in the background here and in the foreground elsewhere is not away', async () => {
  const client = await live.follow(live.urls[0], bob.token);
  await eventuallySeen(true);
  await setForeground(client, false);
  await eventuallySeen(true, false);
  await live.server.database.query((sql) => notify(sql, `another-node p7!1!1!${bob.id.toString(36)}`));
  await eventuallySeen(true, false, true);
  expect(await isListed()).toBe(true);
  await client.close();
  expect(await isListed()).toBe(true);
});

test('a flutter tells the others nothing, or what it has come to', async () => {
  const client = await live.follow(live.urls[2], bob.token);
  await eventuallySeen(true);
  for (let n = 0; n < 20; n += 1) await setForeground(client, n % 2 === 1);
  await setForeground(client, false);
  await eventually(isListed, (is) => !is);
  // The same value never comes twice in a row, since each notification reports a change within the last second.
  expect(seenByAlice().every((online, n, all) => online !== all[n - 1])).toBe(true);
});

test('what cannot be read is refused and changes nothing', async () => {
  const client = await live.follow(live.urls[2], bob.token);
  for (const params of [{}, { foreground: 'yes' }, { foreground: true, more: 1 }, { foreground: null }, null]) {
    expect(await client.request('live.foreground', params)).toMatchObject({
      error: { data: { code: 'invalid_input' } },
    });
  }
  expect(await isListed()).toBe(true);
});

test('is for those who have said who they are', async () => {
  const client = await live.connect(live.urls[2]);
  expect(await client.request('live.foreground', { foreground: false })).toMatchObject({
    error: { data: { code: 'unauthenticated' } },
  });
  await client.call('live.authenticate', { token: bob.token });
  await eventually(isListed, (is) => is);
});

test('the other servers of the database see who turns away and comes back', async () => {
  const server = await TestServer.start({}, { database: live.server.database });
  try {
    const carol = await createPerson(live.server, 'carol');
    await live.add('carol');
    const there = await LiveClient.signIn(server.liveUrl, carol.token);
    const isSeen = async (): Promise<boolean> =>
      (await there.call('presence.list', { conversation: live.group.id })).accounts.some(
        ({ id }: { id: number }) => id === bob.id,
      );
    const client = await live.signIn(live.urls[2], bob.token);
    await eventually(isSeen, (is) => is);
    await setForeground(client, false);
    await eventually(isSeen, (is) => !is);
    await setForeground(client, true);
    await eventually(isSeen, (is) => is);
    await there.close();
  } finally {
    await server.stop();
  }
});
