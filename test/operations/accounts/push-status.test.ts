import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { callAs } from '../../support/call.ts';
import { createTestDatabase } from '../../support/database.ts';
import { DatabaseProxy } from '../../support/database-proxy.ts';
import { newWebPush } from '../../support/devices.ts';
import { createPerson, type TestPerson } from '../../support/people.ts';
import { TestServer } from '../../support/server.ts';

let server: TestServer;
let root: TestPerson;
let alice: TestPerson;
beforeAll(async () => {
  // For the registration of a device, a push service that is configured but cannot send is enough.
  server = await TestServer.start({
    push: { content: 'sender' },
    googlePush: { keys: [{ projectId: 'first', key: '/nowhere.json' }] },
  });
  root = await createPerson(server, 'root', { admin: true });
  alice = await createPerson(server, 'alice');
  for (const token of ['one', 'two']) await callAs(server, alice, 'devices.register', { kind: 'google', token });
});
afterAll(async () => server.stop());

test('push.status has each vendor with its devices, and what went wrong last, the newest first', async () => {
  await server.database.query(
    (sql) => sql`
      insert into push_log (at, account_id, kind, event, category, code)
      values (now() - interval '2 hours', ${alice.id}, 'google', 'removed', 'unregistered', 404),
        (now() - interval '1 hour', ${alice.id}, 'web', 'expired', 'timeout', null)`,
  );
  const status = await callAs(server, root, 'push.status');
  expect(status.content).toBe('sender');
  expect(status.vendors).toMatchObject([
    { kind: 'google', configured: true, devices: 2, pending: 0, due: 0, in_flight: 0, sent: 0 },
    { kind: 'apple', configured: false, problem: null, devices: 0 },
    { kind: 'web', configured: false, problem: null, devices: 0 },
  ]);
  expect(status.vendors[0].problem).toMatch(/\/nowhere\.json does not exist/);
  expect(status.events).toEqual([
    { at: expect.any(String), user: 'alice', kind: 'web', event: 'expired', category: 'timeout', code: null },
    { at: expect.any(String), user: 'alice', kind: 'google', event: 'removed', category: 'unregistered', code: 404 },
  ]);
  expect((await callAs(server, root, 'push.status', { events: 1 })).events).toHaveLength(1);
  expect((await callAs(server, root, 'push.status', { events: 0 })).events).toEqual([]);
});

test('push.test says what became of each device, and of whom there is none', async () => {
  const { devices, ...tested } = await callAs(server, root, 'push.test', { user: 'alice' });
  expect(tested).toEqual({ user: 'alice', id: alice.id });
  // The file of the service account does not exist, so no push can be sent.
  const failed = { kind: 'google', label: null, outcome: 'failed', category: 'unusable', code: null };
  expect(devices).toEqual([
    { ...failed, device: expect.any(Number) },
    { ...failed, device: expect.any(Number) },
  ]);
  expect(await callAs(server, root, 'push.test', { user: 'root' })).toMatchObject({ devices: [] });
  await expect(callAs(server, root, 'push.test', { user: 'nobody' })).rejects.toMatchObject({ code: 'not_found' });
});

test('push.status says while the database is away what is known without it', async () => {
  const database = await createTestDatabase();
  const proxy = await DatabaseProxy.start(database.target);
  const away = await TestServer.start(
    { postgresql: { ...proxy.address, connectTimeoutMs: 1_000 }, webPush: newWebPush() },
    { database },
  );
  try {
    await proxy.refuse();
    const status = await away.operate<{ vendors: unknown[]; events: unknown }>('push.status');
    expect(status.events).toBeNull();
    expect(status.vendors[2]).toMatchObject({ kind: 'web', configured: true, devices: null, pending: null, sent: 0 });
  } finally {
    await proxy.forward();
    await away.stop();
    await proxy.stop();
    await database.drop();
  }
});
