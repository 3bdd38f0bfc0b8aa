import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Receiver } from '../support/receiver.ts';
import { postJson, readJson, TestServer, type TestGroup } from '../support/server.ts';
import { ask, healthWhen, ISO_TIME, NOT_FOUND, registerHook, retriesOf, rowOf, type TestHook } from './hook-fixture.ts';

let server: TestServer;
let receiver: Receiver;
let group: TestGroup;
let hook: TestHook;

beforeAll(async () => {
  const limits = { hookRegistrationsPerGroupPerMinute: 100_000, hookChangesPerGroupPerMinute: 30 };
  const postgresql = { lockTimeoutMs: 60_000, databaseCallTimeoutMs: 60_000 };
  server = await TestServer.start({ limits, delivery: { retryDelaysMs: [3_600_000] }, postgresql });
});
afterAll(() => server.stop());
beforeEach(async () => {
  receiver = await Receiver.start();
  group = await server.createGroup();
  hook = await registerHook(group, { url: receiver.url() });
});
afterEach(() => receiver.stop());

const patch = (body: unknown, to = hook) => ask('PATCH', to.url, body);
const post = (text: string) => postJson(group.webhook, { text });

describe('PATCH of a hook', () => {
  test('pauses it: nothing is sent any more, messages wait, and its health says so', async () => {
    await post('first');
    await healthWhen(hook, ({ last_success_at: at }) => at !== null);
    expect(await patch({ paused: true })).toMatchObject({
      status: 200,
      body: { status: 'Ok', state: 'paused', next_attempt_at: null },
    });
    for (const text of ['second', 'third']) await post(text);
    const { body } = await ask('GET', hook.url);
    expect(body).toEqual({
      status: 'Ok',
      state: 'paused',
      pending: 2,
      oldest_pending_at: expect.stringMatching(ISO_TIME),
      last_success_at: expect.stringMatching(ISO_TIME),
      last_error: null,
      next_attempt_at: null,
    });
    expect((await ask('GET', `${group.webhook}/reverse`)).body).toMatchObject([{ state: 'paused', pending: 2 }]);
    expect(receiver.seqs()).toEqual([1]);
    expect(await patch({ paused: false })).toMatchObject({ status: 200, body: { state: 'active' } });
    await receiver.received(3);
    expect(receiver.seqs()).toEqual([1, 2, 3]);
    await healthWhen(hook, ({ pending }) => pending === 0);
  });

  test.each([
    ['PATCH', '', { paused: true }],
    ['POST', '/redeliver', { discard_backlog: true }],
  ])('is refused when the token is replaced while its body arrives (%s %s)', async (method, path, body) => {
    const before = await rowOf(server, hook);
    const begun = request(`${hook.url}${path}`, { method, headers: { 'content-type': 'application/json' } });
    const answered = once(begun, 'response') as Promise<[IncomingMessage]>;
    const text = JSON.stringify(body);
    begun.write(text.slice(0, 5));
    // A later request is answered, so the server has admitted the first one by then.
    await ask('GET', hook.url);
    await server.operate('groups.rotate-token', { group: group.id });
    begun.end(text.slice(5));
    const [answer] = await answered;
    answer.resume();
    expect(answer.statusCode).toBe(404);
    expect(await rowOf(server, hook)).toEqual(before);
  });

  test('changes nothing that is so already, and says how it is', async () => {
    await patch({ paused: true, order: 'none' });
    const before = await rowOf(server, hook);
    expect(before).toMatchObject({ paused: true, generation: 1 });
    for (const body of [
      { paused: true },
      { order: 'none' },
      { batch: 1, signature: 'v1', skip: [] },
      { rotate_secret: false },
    ]) {
      expect(await patch(body)).toMatchObject({ status: 200, body: { status: 'Ok', state: 'paused' } });
    }
    expect(await rowOf(server, hook)).toEqual(before);
    await patch({ paused: false });
    const resumed = await rowOf(server, hook);
    await patch({ paused: false });
    expect(await rowOf(server, hook)).toEqual(resumed);
  });

  test('changes order, batch, signature of a secret and what is left out', async () => {
    const { status, body } = await patch({
      order: 'none',
      batch: 100,
      signature: 'v1',
      skip: ['bot', 'webhook', 'bot'].slice(0, 2),
    });
    expect(status).toBe(200);
    expect(body).not.toHaveProperty('secret');
    const info = await server.operate<Record<string, unknown>>('hooks.info', { hook: hook.id });
    expect(info).toMatchObject({ order: 'none', batch: 100, signature: 'v1', skip: ['bot', 'webhook'] });
    expect(await rowOf(server, hook)).toMatchObject({ generation: 1, cursorGeneration: 0 });
  });

  test('resumes a hook that fails: it forgets its failures, and everything is due at once', async () => {
    receiver.answer = () => 503;
    await post('failing');
    await healthWhen(hook, ({ state }) => state === 'failing');
    await server.database.query(
      (sql) => sql`
        update reverse_hook set failures = 99, rejections = 4, parked_at = now(), failing_since = now() - interval '9 days'
        where id = ${hook.id}`,
    );
    await server.database.query(
      (sql) => sql`
        insert into delivery_retry (conversation_id, hook_id, seq, last_seq, attempts, next_at)
        values ((select conversation_id from reverse_hook where id = ${hook.id}), ${hook.id}, 1, 1, 7, now() + interval '1 hour')`,
    );
    expect((await ask('GET', hook.url)).body.state).toBe('parked');
    receiver.answer = () => 200;
    expect(await patch({ paused: false })).toMatchObject({ status: 200, body: { state: 'active' } });
    await receiver.received(2);
    await healthWhen(hook, ({ last_success_at: at }) => at !== null);
    const clean = { failures: 0, rejections: 0, failing: false, parked: false, waits: false, paused: false };
    expect(await rowOf(server, hook)).toMatchObject(clean);
  });

  test('makes what a paused hook repeats apart from the others due when it is resumed', async () => {
    await patch({ paused: true });
    await server.database.query(
      (sql) => sql`
        insert into delivery_retry (conversation_id, hook_id, seq, last_seq, attempts, next_at)
        values ((select conversation_id from reverse_hook where id = ${hook.id}), ${hook.id}, 1, 1, 7, now() + interval '1 hour')`,
    );
    await server.operate('hooks.update', { hook: hook.id, paused: false, order: 'strict' });
    for (const row of await retriesOf(server, hook)) expect(row).toEqual([1, 1, 0, true]);
  });

  test('replaces the secret: the new one is shown, and the old one is kept for 24 hours', async () => {
    const first = await rowOf(server, hook);
    const { status, body } = await patch({ rotate_secret: true });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      status: 'Ok',
      state: 'active',
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
    });
    expect(body.secret).not.toBe(hook.secret);
    const second = await rowOf(server, hook);
    expect(second).toMatchObject({ oldSecret: first.secret, generation: 1 });
    expect(second.oldForS).toBeGreaterThan(86_390);
    expect(second.oldForS).toBeLessThanOrEqual(86_400);
    await patch({ rotate_secret: true });
    expect(await rowOf(server, hook)).toMatchObject({ oldSecret: second.secret, generation: 2 });
    expect((await ask('GET', hook.url)).body).not.toHaveProperty('secret');
  });

  test('shows a new secret though the node that delivers does not confirm it, but does not call a hook paused then', async () => {
    const other = await registerHook(group, { url: receiver.url('/other') });
    // The other node, which does not exist, has a lease. So it counts as alive, and does not answer.
    await server.database.query(
      (sql) => sql`
        update lease set holder = 'elsewhere', epoch = epoch + 1, expires_at = now() + interval '1 minute'
        where partition in (${hook.id % 64}, ${other.id % 64})`,
    );
    try {
      const [rotated, paused] = await Promise.all([
        patch({ rotate_secret: true }),
        patch({ rotate_secret: true, paused: true }, other),
      ]);
      expect(rotated).toMatchObject({ status: 200, body: { secret: expect.stringMatching(/^whsec_/) } });
      expect([paused.status, paused.headers.has('retry-after')]).toEqual([503, true]);
      expect(paused.body.message).toMatch(/^The change is stored, but/);
      expect(await rowOf(server, other)).toMatchObject({ paused: true });
    } finally {
      await server.database.query((sql) => sql`update lease set expires_at = now() where holder = 'elsewhere'`);
    }
  });

  test('at once by many is one change after the other', async () => {
    const secrets = await Promise.all(
      Array.from({ length: 5 }, async () => (await patch({ rotate_secret: true })).body.secret),
    );
    expect(new Set(secrets).size).toBe(5);
    expect(await rowOf(server, hook)).toMatchObject({ generation: 5 });
  });

  test.each([
    ['', 'The body is not valid JSON: it ends too early; send such as {"paused": true}'],
    ['[]', 'body: Invalid input: expected object, received array'],
    [
      '{}',
      'The body names nothing to change: give one or more of paused, format, order, batch, signature, skip, triggers, max_age, events, rotate_secret',
    ],
    [
      '{"pause":true}',
      'The body names nothing to change: give one or more of paused, format, order, batch, signature, skip, triggers, max_age, events, rotate_secret',
    ],
    ['{"paused":1}', 'paused: Invalid input: expected boolean, received number'],
    ['{"order":"loose"}', 'order: must be one of strict, none'],
    ['{"batch":0}', 'batch: Too small: expected number to be >=1'],
    ['{"batch":101}', 'batch: Too big: expected number to be <=100'],
    ['{"batch":1.5}', 'batch: Invalid input: expected int, received number'],
    ['{"signature":"v2"}', 'signature: must be one of v1, v1a, both'],
    ['{"skip":["user"]}', 'skip.0: must be one of webhook, bot'],
    ['{"events":["message.created"]}', 'events.0: must be one of message.updated, message.deleted'],
    ['{"events":{}}', 'events: Invalid input: expected array, received object'],
    ['{"skip":{}}', 'skip: Invalid input: expected array, received object'],
    ['{"rotate_secret":"yes"}', 'rotate_secret: Invalid input: expected boolean, received string'],
    ['{"paused":true,"batch":-1}', 'batch: Too small: expected number to be >=1'],
  ])('is 400 with a sentence, and changes nothing: %s', async (body, message) => {
    expect(await patch(body)).toMatchObject({ status: 400, body: { message } });
    expect(await rowOf(server, hook)).toMatchObject({ generation: 0, paused: false });
  });

  test('is 400 for a signature that the server has no key for', async () => {
    const { status, body } = await patch({ signature: 'v1a' });
    expect([status, body.message]).toEqual([400, expect.stringContaining('klatch keys generate')]);
  });

  test('is 410 for an unknown hook, one of another group and a removed one, and 404 for a wrong token', async () => {
    const other = await server.createGroup('Other');
    for (const url of [
      `${group.webhook}/reverse/0`,
      `${group.webhook}/reverse/2147483647`,
      `${other.webhook}/reverse/${hook.id}`,
    ]) {
      const answer = await ask('PATCH', url, { paused: true });
      expect([answer.status, answer.body]).toEqual([410, NOT_FOUND]);
    }
    await ask('DELETE', hook.url);
    expect(await patch({ paused: true })).toMatchObject({ status: 410, body: NOT_FOUND });
    const wrong = hook.url.replace(group.token, 'x'.repeat(43));
    const answer = await ask('PATCH', wrong, 'no json');
    expect([answer.status, answer.body]).toEqual([404, { message: 'Wrong integration token' }]);
  });

  test('is 503 with Retry-After past so many a minute, refused ones too', async () => {
    let asked = 1;
    let answer = await patch('{}');
    // The limit gives the group one more request every two seconds, if the loop takes that long.
    for (; answer.status === 400 && asked < 100; asked += 1) answer = await patch('{}');
    expect(asked).toBeGreaterThan(30);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
    expect(answer.body.message).toBe(
      'A group takes 30 changes of its reverse webhooks a minute, refused ones too; nothing was done, please repeat it later',
    );
    const { status } = await patch({ paused: true });
    expect(await rowOf(server, hook)).toMatchObject({ paused: status === 200 });
    // A change by the administrator does not count towards the limit.
    expect(await server.operate('hooks.update', { hook: hook.id, paused: true })).toMatchObject({ state: 'paused' });
  });

  test('takes a body of many bytes for too large', async () => {
    const answer = await readJson(await fetch(hook.url, { method: 'PATCH', body: ' '.repeat(1_100_000) }));
    expect(answer.status).toBe(413);
  });
});
