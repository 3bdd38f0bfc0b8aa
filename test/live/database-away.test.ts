import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import { createTestDatabase, waitingSessions, type TestDatabase } from '../support/database.ts';
import { DatabaseProxy } from '../support/database-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { createPerson } from '../support/people.ts';
import { TestServer } from '../support/server.ts';
import { LiveFixture } from './fixture.ts';

let database: TestDatabase;
let proxy: DatabaseProxy;
let live: LiveFixture;
let other: TestServer;
beforeEach(async () => {
  database = await createTestDatabase();
  proxy = await DatabaseProxy.start(database.target);
  // The lock time-out is long, so that a commit that a test blocks waits for its lock, however long the machine takes.
  const postgresql = { ...proxy.address, lockTimeoutMs: 60_000 };
  live = await LiveFixture.start({ postgresql }, { database });
  other = await TestServer.start({}, { database });
});
afterEach(async () => {
  await proxy.forward();
  await live.stop();
  await other.stop();
  await proxy.stop();
  await database.drop();
});

test('a node that loses the database keeps its clients, and they miss and repeat nothing of what others wrote', async () => {
  const clients = await Promise.all(live.urls.map((url) => live.follow(url)));
  await live.post('before');
  await proxy.refuse();
  const webhook = live.group.webhook.replace(live.server.url, other.url);
  for (const text of ['one', 'two', 'three']) await live.post(text, { ...live.group, webhook });
  await other.operate('groups.update', { group: live.group.id, title: 'Renamed' });
  expect(await clients[0]!.request('live.ping')).toMatchObject({ result: {} });
  expect(await clients[0]!.request('conversations.list')).toMatchObject({
    error: { data: { code: 'database_unavailable' } },
  });
  await proxy.forward();
  for (const client of clients) {
    const changes = await eventually(
      () => client.changes(live.group.id),
      (all) => all.at(-1)?.notice?.kind === 'renamed',
    );
    const revs = changes.map(({ rev }) => rev);
    expect(revs).toEqual(revs.map((_, index) => revs[0] + index));
    expect(changes.flatMap(({ message }) => message?.text ?? [])).toEqual(['before', 'one', 'two', 'three']);
    expect(client.code).toBe(null);
  }
});

test('a member who goes offline while the database is away is reported offline when it is back', async () => {
  const bob = await createPerson(live.server, 'bob');
  await live.add('bob');
  const alice = await live.follow(live.urls[0]);
  const client = await live.follow(live.urls[1], bob.token);
  const reported = (): boolean[] => alice.of('presence').map(({ params }) => params.online as boolean);
  await eventually(reported, (all) => all.length === 1);
  await proxy.refuse();
  await client.call('live.foreground', { foreground: false });
  // In this time at least two periodic checks run, whose queries fail.
  await wait(2_500);
  expect(reported()).toEqual([true]);
  await proxy.forward();
  expect(await eventually(reported, (all) => all.length === 2)).toEqual([true, false]);
});

test('a member who goes offline and comes back while the database is away is reported online when it is back', async () => {
  const [bob, carol] = [await createPerson(live.server, 'bob'), await createPerson(live.server, 'carol')];
  for (const nick of ['bob', 'carol']) await live.add(nick);
  const alice = await live.follow(live.urls[0]);
  const reported = (id: number): boolean[] =>
    alice.of('presence').flatMap(({ params }) => (params.account.id === id ? [params.online as boolean] : []));
  const clients = [await live.follow(live.urls[1], bob.token), await live.follow(live.urls[1], carol.token)];
  await eventually(
    () => [...reported(bob.id), ...reported(carol.id)],
    (all) => all.length === 2,
  );
  await proxy.refuse();
  for (const client of clients) await client.call('live.foreground', { foreground: false });
  // In this time at least two periodic checks run, whose queries fail.
  await wait(2_500);
  await clients[0]!.call('live.foreground', { foreground: true });
  await proxy.forward();
  await eventually(
    () => reported(carol.id),
    (all) => all.at(-1) === false,
  );
  // The server sends the newest state although these clients know it: a client that read the list in between knows the
  // opposite.
  await eventually(
    () => reported(bob.id),
    (all) => all.length > 1 && all.at(-1) === true,
  );
});

test('who is removed while the database is away for this node is told nothing more when it is back', async () => {
  const client = await live.follow(live.urls[0]);
  await proxy.refuse();
  await other.operate('groups.remove-member', { group: live.group.id, user: 'alice' });
  await proxy.forward();
  await eventually(
    () => client.of('conversation.left').length,
    (count) => count === 1,
  );
  const left = client.notifications.findIndex(({ method }) => method === 'conversation.left');
  await live.post('after', live.group);
  await client.call('live.ping');
  expect(client.notifications.slice(left + 1).filter(({ method }) => method === 'conversation.change')).toEqual([]);
});

/** Makes a change through the node behind the proxy. The node commits it, but gets no answer of the database. */
async function changeUnheard(change: () => Promise<unknown>): Promise<void> {
  const changes: Promise<unknown>[] = [];
  await database.query((sql) =>
    sql.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(1)`;
      changes.push(change().catch((error: unknown) => error));
      await eventually(
        () => waitingSessions(database),
        (waiting) => waiting.length > 0,
      );
      proxy.hold('answers');
    }),
  );
  expect(await Promise.all(changes)).toEqual([expect.objectContaining({ code: 'outcome_unknown' })]);
  await proxy.forward();
}

test('what was committed and its answer lost is heard by those who follow, though nothing else is changed there', async () => {
  const client = await live.follow(other.liveUrl);
  const texts = (): string[] =>
    client.changes(live.group.id).flatMap(({ message }) => (message?.deleted ? 'deleted' : (message?.text ?? [])));
  const eventuallyReceived = (...expected: string[]) =>
    eventually(
      async () => texts(),
      (all) => all.join() === expected.join(),
    );
  const conversation = live.group.id;
  const as = (name: string, input: object) => callAs(live.server, live.alice, name, { conversation, ...input });
  await as('messages.send', { text: 'one' });
  // With this trigger, a change of a conversation waits in its commit while the test holds the lock.
  await database.query(
    (sql) => sql`create function wait_in_commit() returns trigger language plpgsql
      as 'begin perform pg_advisory_xact_lock(1); return null; end'`,
  );
  await database.query(
    (sql) => sql`create constraint trigger wait_in_commit after update on conversation_head
      deferrable initially deferred for each row execute function wait_in_commit()`,
  );
  await changeUnheard(() => as('messages.send', { text: 'two' }));
  await eventuallyReceived('one', 'two');
  await changeUnheard(() => as('messages.delete', { seq: 1 }));
  await eventuallyReceived('one', 'two', 'deleted');
});
