import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { within } from '../run/machine-speed.ts';
import { Receiver } from '../support/receiver.ts';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';
import { ask, healthWhen, NOT_FOUND, registerHook, rowOf, type TestHook } from './hook-fixture.ts';

let server: TestServer;
let receiver: Receiver;
let group: TestGroup;
let hook: TestHook;

beforeAll(async () => {
  const limits = { hookRegistrationsPerGroupPerMinute: 100_000 };
  server = await TestServer.start({ limits, delivery: { retryDelaysMs: [3_600_000] } });
});
afterAll(() => server.stop());
beforeEach(async () => {
  receiver = await Receiver.start();
  group = await server.createGroup('Pinged');
  hook = await registerHook(group, { url: receiver.url() });
});
afterEach(() => receiver.stop());

const ping = (to = hook) => ask('POST', `${to.url}/ping`);

/** Changes the row of the hook as if the last ping was long ago. */
async function forgetPing(to = hook): Promise<void> {
  await server.database.query((sql) => sql`update reverse_hook set pinged_at = null where id = ${to.id}`);
}

describe('a ping', () => {
  test('arrives at once, signed, with an id of its own, and its answer is told', async () => {
    const answer = await ping();
    expect([answer.status, answer.body]).toEqual([
      200,
      { delivered: true, category: null, code: 200, duration_ms: expect.any(Number) },
    ]);
    const [arrival] = await receiver.received(1);
    expect(arrival!.body).toEqual({
      type: 'webhook.ping',
      timestamp: expect.any(String),
      data: { group: { id: group.id, title: 'Pinged' }, hook: { id: hook.id } },
    });
    const { headers, raw } = arrival!;
    expect(headers['webhook-id']).toBe(`${hook.id}_ping_${Date.parse(arrival!.body.timestamp)}`);
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'klatch-hops': '0',
      'user-agent': expect.stringMatching(/^Klatch\//),
    });
    expect(() => new Webhook(hook.secret).verify(raw, headers as Record<string, string>)).not.toThrow();
  });

  test('takes a failure for what it is, and changes nothing about the hook', async () => {
    receiver.answer = () => 500;
    await postJson(group.webhook, { text: 'x' });
    await healthWhen(hook, ({ state }) => state === 'failing');
    const before = [await rowOf(server, hook), (await ask('GET', hook.url)).body];
    for (const code of [404, 302, 410, 503]) {
      receiver.answer = () => code;
      const answer = await ping();
      expect([answer.status, answer.body]).toEqual([
        200,
        { delivered: false, category: 'status', code, duration_ms: expect.any(Number) },
      ]);
      await forgetPing();
    }
    receiver.answer = () => 204;
    expect((await ping()).body).toMatchObject({ delivered: true, code: 204 });
    expect([await rowOf(server, hook), (await ask('GET', hook.url)).body]).toEqual(before);
    const { body: log } = await ask('GET', `${hook.url}/deliveries`);
    expect(log).toHaveLength(1);
  });

  test('reaches the target of a paused hook', async () => {
    await ask('PATCH', hook.url, { paused: true });
    expect((await ping()).body).toMatchObject({ delivered: true });
    expect((await ask('GET', hook.url)).body.state).toBe('paused');
  });

  test('names the category where nobody listens, and where the address is refused', async () => {
    const { url } = hook;
    await receiver.stop();
    expect(await ask('POST', `${url}/ping`)).toMatchObject({
      status: 200,
      body: { delivered: false, category: 'refused', code: null },
    });
    const forbidden = await registerHook(group, { url: 'http://localhost.invalid/hidden' });
    const { body } = await ping(forbidden);
    expect(body).toMatchObject({ delivered: false, category: 'dns', code: null });
    expect(JSON.stringify(body)).not.toContain('hidden');
    receiver = await Receiver.start();
  });

  test('asks the address policy, which may have been changed since the registration', async () => {
    await server.database.query(
      (sql) => sql`update reverse_hook set url = 'http://10.0.0.1/hidden' where id = ${hook.id}`,
    );
    expect((await ping()).body).toMatchObject({ delivered: false, category: 'address policy', code: null });
  });

  test('is over long before a delivery would be given up, when its target hangs', async () => {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    try {
      const hanging = await registerHook(group, { url: `http://127.0.0.1:${(silent.address() as AddressInfo).port}/` });
      const started = performance.now();
      const answer = await ping(hanging);
      expect([answer.status, answer.body]).toEqual([
        200,
        { delivered: false, category: 'timeout', code: null, duration_ms: expect.any(Number) },
      ]);
      // A ping waits 6 s for its answer; a delivery would wait for 15.
      expect(performance.now() - started).toBeLessThan(within(9_900));
    } finally {
      silent.close();
    }
  });

  test('is one in 5 s for each hook; the next is told when', async () => {
    const other = await registerHook(group, { url: receiver.url('/other') });
    expect((await ping()).status).toBe(200);
    const answer = await ping();
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
    expect(answer.body).toEqual({
      message: 'A reverse webhook is pinged once in 5 seconds; this ping was not sent, please repeat it later',
    });
    expect((await ping(other)).status).toBe(200);
    await server.database.query(
      (sql) => sql`update reverse_hook set pinged_at = now() - interval '5 seconds' where id = ${hook.id}`,
    );
    expect((await ping()).status).toBe(200);
    // The time of the last ping was written before the clock was set back.
    await server.database.query(
      (sql) => sql`update reverse_hook set pinged_at = now() + interval '1 hour' where id = ${hook.id}`,
    );
    expect((await ping()).status).toBe(200);
    expect(receiver.arrivals).toHaveLength(4);
  });

  test('at once by many is sent once', async () => {
    const beganMs = performance.now();
    const statuses = (await Promise.all(Array.from({ length: 8 }, () => ping()))).map(({ status }) => status);
    // Each hook may be pinged once in 5 s. On a machine that stalls, the requests may arrive over a longer time.
    const allowed = 1 + Math.floor((performance.now() - beganMs) / 5_000);
    const sent = statuses.filter((status) => status === 200).length;
    expect(statuses.filter((status) => status === 503)).toHaveLength(8 - sent);
    expect(sent).toBeGreaterThan(0);
    expect(sent).toBeLessThanOrEqual(allowed);
    expect(receiver.arrivals).toHaveLength(sent);
  });

  test('of a fifth hook of a group waits until one of the four before is over', async () => {
    const over = Promise.withResolvers<number>();
    receiver.answer = () => over.promise;
    const hooks = await Promise.all([1, 2, 3, 4, 5].map((n) => registerHook(group, { url: receiver.url(`/${n}`) })));
    const held = hooks.slice(0, 4).map((each) => ping(each));
    await receiver.received(4);
    const answer = await ping(hooks[4]);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
    expect(answer.body.message).toBe('Too many pings are on their way; this one was not sent, please repeat it later');
    over.resolve(200);
    for (const { body } of await Promise.all(held)) expect(body).toMatchObject({ delivered: true });
    await forgetPing(hooks[4]);
    expect((await ping(hooks[4])).status).toBe(200);
  });

  test('is 410 for an unknown hook, one of another group and a removed one, 404 for a wrong token, 405 for another method', async () => {
    const other = await server.createGroup('Other');
    for (const url of [`${group.webhook}/reverse/0`, `${other.webhook}/reverse/${hook.id}`]) {
      const answer = await ask('POST', `${url}/ping`);
      expect([answer.status, answer.body]).toEqual([410, NOT_FOUND]);
    }
    const wrong = await ask('POST', `${hook.url.replace(group.token, 'x'.repeat(43))}/ping`);
    expect([wrong.status, wrong.body]).toEqual([404, { message: 'Wrong integration token' }]);
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const answer = await ask(method, `${hook.url}/ping`);
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST, OPTIONS']);
    }
    await ask('DELETE', hook.url);
    expect(await ping()).toMatchObject({ status: 410, body: NOT_FOUND });
    expect(receiver.arrivals).toHaveLength(0);
  });
});
