import { once } from 'node:events';
import { request } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { within } from '../run/machine-speed.ts';
import { Receiver } from '../support/receiver.ts';
import { postJson, readJson, TestServer, type TestGroup } from '../support/server.ts';

const changes = { delivery: { retryDelaysMs: [30, 60] }, limits: { hookRegistrationsPerGroupPerMinute: 1_000 } };

describe('two servers on one database', () => {
  let database: TestDatabase;
  let receiver: Receiver;
  let first: TestServer;
  let second: TestServer;
  const started: TestServer[] = [];

  async function start(): Promise<TestServer> {
    const server = await TestServer.start(changes, { database });
    started.push(server);
    return server;
  }

  beforeAll(async () => {
    database = await createTestDatabase();
    first = await start();
    second = await start();
  });
  afterEach(() => receiver.stop());
  afterAll(async () => {
    for (const server of started) await server.stop();
    await database.drop();
  });

  const on = (server: TestServer, group: TestGroup): string => `${server.url}/v1/webhooks/${group.token}`;
  const pending = async (server: TestServer, group: TestGroup): Promise<number> => {
    const { body } = await readJson(await fetch(`${on(server, group)}/reverse`));
    return (body as { pending: number }[]).reduce((sum, hook) => sum + hook.pending, 0);
  };

  /** Ends the sessions that listen for notifications: for half a second no node receives any. */
  const killListenSessions = (): Promise<unknown> =>
    database.query(
      (sql) => sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'klatch listen' and datname = current_database()`,
    );

  test('forward each message once, whichever of them took it', async () => {
    receiver = await Receiver.start();
    const group = await first.createGroup();
    for (let n = 0; n < 8; n += 1)
      await postJson(`${on(n % 2 === 0 ? first : second, group)}/reverse`, { url: receiver.url(`/${n}`) });
    for (let n = 1; n <= 20; n += 1) await postJson(on(n % 2 === 0 ? first : second, group), { text: `message ${n}` });
    await receiver.received(160);
    await eventually(
      () => pending(second, group),
      (count) => count === 0,
    );
    for (let n = 0; n < 8; n += 1) expect(receiver.seqs(`/${n}`)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
  });

  test('hear of each other at once, not by the sweep', async () => {
    receiver = await Receiver.start();
    const group = await first.createGroup();
    for (let n = 0; n < 4; n += 1) await postJson(`${on(first, group)}/reverse`, { url: receiver.url(`/${n}`) });
    const took: number[] = [];
    for (let n = 1; n <= 3; n += 1) {
      const posted = performance.now();
      await postJson(on(second, group), { text: 'over there' });
      await receiver.received(4 * n);
      took.push(performance.now() - posted);
    }
    // With a notification a message takes milliseconds. Without it, each message after the first would wait for the
    // sweep, which runs every 5 s.
    expect(Math.min(...took.slice(1))).toBeLessThan(within(2_500));
  });

  test('refuse a token that was rotated on the other one at once', async () => {
    receiver = await Receiver.start();
    const group = await first.createGroup();
    for (const server of [first, second])
      expect((await postJson(on(server, group), { text: 'before' })).status).toBe(200);
    const rotated = await first.operate<{ token: string }>('groups.rotate-token', { group: group.id });
    for (const server of [first, second])
      expect((await postJson(on(server, group), { text: 'after' })).status).toBe(404);
    const answer = await postJson(`${second.url}/v1/webhooks/${rotated.token}`, { text: 'new' });
    expect(answer.body.id).toBe(`${group.id}:3`);
  });

  test('refuse what is not signed as soon as a secret was set on the other one, also before they hear of it', async () => {
    receiver = await Receiver.start();
    const group = await first.createGroup();
    expect((await postJson(on(second, group), { text: 'before' })).status).toBe(200);
    await killListenSessions();
    await first.operate('groups.set-incoming-secret', { group: group.id, signed_only: true });
    // The answer is 503 with Retry-After, unless the node has read the database again by then.
    expect([401, 503]).toContain((await postJson(on(second, group), { text: 'after' })).status);
    expect((await postJson(on(second, group), { text: 'after' })).status).toBe(401);
    await killListenSessions();
    await first.operate('groups.remove-incoming-secret', { group: group.id });
    expect([200, 503]).toContain((await postJson(on(second, group), { text: 'after' })).status);
    const taken = await postJson(on(second, group), { text: 'last' });
    expect([`${group.id}:2`, `${group.id}:3`]).toContain(taken.body.id);
  });

  test('refuse a rotated token that they know nothing of yet, whatever it is used for', async () => {
    receiver = await Receiver.start();
    const group = await first.createGroup();
    expect((await postJson(on(second, group), { text: 'before' })).status).toBe(200);
    await killListenSessions();
    await first.operate('groups.rotate-token', { group: group.id });
    const url = on(second, group);
    const answers = await Promise.all([
      postJson(url, { text: '' }),
      postJson(url, { text: 'after' }),
      fetch(url, { method: 'POST', body: 'text', headers: { 'content-encoding': 'compress' } }),
      fetch(url),
      fetch(`${url}/reverse`),
      postJson(`${url}/reverse`, { url: receiver.url() }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404, 404, 404]);
    expect((await fetch(`${url}/status`)).status).toBe(410);
  });

  test('register nothing for a request that began before its token was rotated', async () => {
    receiver = await Receiver.start();
    const group = await first.createGroup();
    const body = JSON.stringify({ url: receiver.url() });
    const req = request(`${on(second, group)}/reverse`, {
      method: 'POST',
      headers: { 'content-length': body.length, expect: '100-continue' },
    });
    const answered = new Promise<number>((resolve) => req.once('response', (res) => resolve(res.resume().statusCode!)));
    req.flushHeaders();
    // The server has accepted the token when it requests the body.
    await once(req, 'continue');
    const { token } = await first.operate<{ token: string }>('groups.rotate-token', { group: group.id });
    req.end(body);
    expect(await answered).toBe(404);
    expect((await readJson(await fetch(on(first, { ...group, token }) + '/reverse'))).body).toEqual([]);
  });

  test('stop attempts of a hook that was deleted on the other one', async () => {
    receiver = await Receiver.start(() => 500);
    const group = await first.createGroup();
    const hooks: number[] = [];
    for (let n = 0; n < 4; n += 1) {
      hooks.push((await postJson(`${on(first, group)}/reverse`, { url: receiver.url(`/${n}`) })).body.id);
    }
    await postJson(on(first, group), { text: 'nobody takes this' });
    await receiver.received(12);
    for (const id of hooks)
      expect((await fetch(`${on(second, group)}/reverse/${id}`, { method: 'DELETE' })).status).toBe(202);
    // The later post proves that the notification had time to arrive: after its delivery, no old delivery may come.
    const clock = await Receiver.start();
    await postJson(`${on(second, group)}/reverse`, { url: clock.url() });
    await postJson(on(second, group), { text: 'tick' });
    await clock.received(1);
    const before = receiver.arrivals.length;
    for (let n = 2; n <= 20; n += 1) {
      await postJson(on(second, group), { text: 'tick' });
      await clock.received(n);
    }
    await clock.stop();
    expect(receiver.arrivals.length).toBe(before);
  });

  test('stop them before the deletion is answered, also where the word of it is lost at first', async () => {
    receiver = await Receiver.start(() => 500);
    const group = await first.createGroup();
    const hooks: number[] = [];
    for (let n = 0; n < 8; n += 1) {
      hooks.push((await postJson(`${on(first, group)}/reverse`, { url: receiver.url(`/${n}`) })).body.id);
    }
    await postJson(on(first, group), { text: 'nobody takes this' });
    await receiver.received(24);
    await killListenSessions();
    const answers = await Promise.all(
      hooks.map((id) => fetch(`${on(second, group)}/reverse/${id}`, { method: 'DELETE' })),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
    // After this round trip, the requests that were in flight at the answer have arrived. From then on no request may
    // arrive; before, one came every 60 ms.
    await postJson(receiver.url('/done'), { data: { message: { seq: 0 } } });
    const done = receiver.arrivals.findIndex(({ path }) => path === '/done');
    const clock = await Receiver.start();
    await postJson(`${on(second, group)}/reverse`, { url: clock.url() });
    for (let n = 1; n <= 50; n += 1) {
      await postJson(on(second, group), { text: 'tick' });
      await clock.received(n);
    }
    await clock.stop();
    expect(receiver.arrivals.slice(done + 1)).toEqual([]);
  });

  test('hand their lanes over when they stop', async () => {
    receiver = await Receiver.start();
    const group = await second.createGroup();
    for (let n = 0; n < 4; n += 1) await postJson(`${on(second, group)}/reverse`, { url: receiver.url(`/${n}`) });
    await first.stop();
    for (let n = 1; n <= 5; n += 1) await postJson(on(second, group), { text: `message ${n}` });
    await receiver.received(20);
    for (let n = 0; n < 4; n += 1) expect(receiver.seqs(`/${n}`)).toEqual([1, 2, 3, 4, 5]);
  });
});
