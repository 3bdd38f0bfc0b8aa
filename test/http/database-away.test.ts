import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createTestDatabase, waitingSessions, type TestDatabase } from '../support/database.ts';
import { DatabaseProxy } from '../support/database-proxy.ts';
import { callAs } from '../support/call.ts';
import { within } from '../run/machine-speed.ts';
import { createPerson, signIn } from '../support/people.ts';
import { postJson, readJson, TestServer, type JsonAnswer, type TestGroup } from '../support/server.ts';
import { expectResponseHeaders, storedMessages } from './wire.ts';

const AWAY = { message: 'The database is away; nothing was done, please repeat the request' };
const UNKNOWN = {
  message:
    'The answer of the database was lost: the message may have been posted. ' +
    'Repeating a post is safe with an Idempotency-Key',
};
/** The time-out of a flush in these tests, and the time by which an answer may exceed its limit on a busy machine. */
const FLUSH_MS = 1_000;
const SLACK_MS = 3_000;

let database: TestDatabase;
let proxy: DatabaseProxy;
let server: TestServer;
let group: TestGroup;
beforeEach(async () => {
  database = await createTestDatabase();
  proxy = await DatabaseProxy.start(database.target);
  const postgresql = {
    ...proxy.address,
    databaseCallTimeoutMs: 5_000,
    flushTimeoutMs: FLUSH_MS,
    connectTimeoutMs: 1_000,
  };
  // Posts wait for an unreachable database, in these tests only as long as for a flush.
  const limits = { hookRegistrationsPerGroupPerMinute: 1_000, intakeTimeoutMs: FLUSH_MS };
  server = await TestServer.start({ postgresql, limits }, { database });
  group = await server.createGroup();
});
afterEach(async () => {
  await proxy.forward();
  await server.stop();
  await proxy.stop();
  await database.drop();
});

interface Timed extends JsonAnswer {
  readonly ms: number;
}

async function timed(pending: Promise<JsonAnswer>): Promise<Timed> {
  const started = performance.now();
  const response = await pending;
  return { ...response, ms: performance.now() - started };
}

const post = (text: string, headers: Record<string, string> = {}): Promise<Timed> =>
  timed(postJson(group.webhook, { text }, headers));

const get = async (path: string): Promise<Timed> =>
  timed(fetch(`${server.url}${path}`).then((response) => readJson(response)));

function expectUnavailable(response: Timed, body: unknown, withinMs: number): void {
  expect([response.status, response.body]).toEqual([503, body]);
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
  expectResponseHeaders(response);
  expect(response.ms).toBeLessThan(within(withinMs));
}

/** Posts one message, and repeats the post under its key until the server accepts it, however busy the machine is. */
async function postBefore(): Promise<void> {
  for (;;) {
    const { status } = await post('before', { 'idempotency-key': 'before' });
    if (status === 200) return;
    expect(status).toBe(503);
    await new Promise(setImmediate);
  }
}

/** Repeats a post until the server accepts it. Expects that within `withinMs`, and before it only answers 503. */
async function expectReturn(withinMs: number): Promise<void> {
  const started = performance.now();
  for (;;) {
    const response = await post('are you back');
    if (response.status === 200) break;
    expect(response.status).toBe(503);
    expect(performance.now() - started).toBeLessThan(within(withinMs));
    await new Promise(setImmediate);
  }
  while ((await get('/v1/ready')).status !== 200) {
    // The server caches its last readiness for a moment, and may have to open a new connection for the next check.
    expect(performance.now() - started).toBeLessThan(within(withinMs + 5_000));
  }
}

async function texts(): Promise<string[]> {
  return (await storedMessages(server, group)).map((message) => message.text);
}

describe('while connections to the database are refused', () => {
  test('posts are 503 with Retry-After at once, and taken soon after its return', async () => {
    await postBefore();
    await proxy.refuse();
    for (const text of ['first', 'second', 'third']) {
      const response = await post(text);
      expect(response.status).toBe(503);
      expect([AWAY, UNKNOWN]).toContainEqual(response.body);
      expect(response.ms).toBeLessThan(within(4_500));
    }
    expectUnavailable(await post('fourth'), AWAY, SLACK_MS);
    await proxy.forward();
    await expectReturn(15_000);
    expect(await texts()).toEqual(['before', 'are you back']);
  });

  test('a token that is not remembered is 503, never 404', async () => {
    await proxy.refuse();
    for (let time = 0; time < 6; time += 1) expectUnavailable(await post('x'), AWAY, 4_500);
    const unknown = `${server.url}/v1/webhooks/${'x'.repeat(43)}`;
    expectUnavailable(await timed(postJson(unknown, { text: 'x' })), AWAY, 4_500);
    expectUnavailable(await get(`/v1/webhooks/${group.token}/status`), AWAY, 4_500);
    await proxy.forward();
    await expectReturn(15_000);
  });

  test('/v1/ready is 503 and /v1/status and /v1/about still answer', async () => {
    expect((await get('/v1/ready')).status).toBe(200);
    await proxy.refuse();
    // The server caches its last readiness for a moment.
    let response = await get('/v1/ready');
    while (response.status === 200) response = await get('/v1/ready');
    expectUnavailable(response, AWAY, 4_500);
    expect((await get('/v1/status')).body).toEqual({ status: 'Ok' });
    expect((await get('/v1/about')).status).toBe(200);
    await proxy.forward();
    await expectReturn(15_000);
  });

  test('the reverse webhooks’ routes are 503 and do nothing', async () => {
    const { body } = await postJson(`${group.webhook}/reverse`, { url: 'http://127.0.0.1:9/' });
    await proxy.refuse();
    const reverse = `/v1/webhooks/${group.token}/reverse`;
    expectUnavailable(await get(reverse), AWAY, 4_500);
    expectUnavailable(await get(`${reverse}/${body.id}`), AWAY, 4_500);
    expectUnavailable(await timed(postJson(`${server.url}${reverse}`, { url: 'http://127.0.0.1:8/' })), AWAY, 4_500);
    const removal = fetch(`${server.url}${reverse}/${body.id}`, { method: 'DELETE' }).then(readJson);
    expectUnavailable(await timed(removal), AWAY, 4_500);
    await proxy.forward();
    await expectReturn(15_000);
    expect((await get(reverse)).body).toMatchObject([{ id: body.id }]);
  });
});

describe('when the connections to the database are cut', () => {
  test('the next posts are taken without a restart', async () => {
    for (let round = 0; round < 3; round += 1) {
      expect((await post(`round ${round}`)).status).toBe(200);
      proxy.cut();
      await expectReturn(15_000);
    }
  });

  test('by PostgreSQL itself, the next posts are taken as well', async () => {
    await postBefore();
    await database.query(
      (sql) => sql`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()`,
    );
    await expectReturn(15_000);
  });
});

describe('while the network swallows everything between server and database', () => {
  test('posts are 503 within the bound, then at once, and taken soon after its return', async () => {
    await postBefore();
    proxy.hold('both');
    expectUnavailable(await post('first'), UNKNOWN, FLUSH_MS + SLACK_MS);
    expectUnavailable(await post('second'), AWAY, SLACK_MS);
    expectUnavailable(await get('/v1/ready'), AWAY, 1_000 + SLACK_MS);
    await proxy.forward();
    await expectReturn(15_000);
  });

  test('hundreds of posts at once are 503 within the bound, and none hangs', async () => {
    await postBefore();
    proxy.hold('both');
    const responses = await Promise.all(Array.from({ length: 300 }, (_, i) => post(`${i}`)));
    for (const response of responses) {
      expect(response.status).toBe(503);
      expect(response.ms).toBeLessThan(within(FLUSH_MS + 2 * SLACK_MS));
    }
  });

  test('tokens that are not remembered are 503 within 2 s', async () => {
    proxy.hold('both');
    const responses = await Promise.all(Array.from({ length: 20 }, () => post('x')));
    for (const response of responses) expectUnavailable(response, AWAY, 1_500 + SLACK_MS);
    await proxy.forward();
    await expectReturn(15_000);
  });

  test('connections that never come back are replaced', async () => {
    await postBefore();
    expect((await get(`/v1/webhooks/${group.token}/reverse`)).status).toBe(200);
    proxy.abandon();
    expectUnavailable(await post('first'), UNKNOWN, FLUSH_MS + SLACK_MS);
    await expectReturn(15_000);
  });

  test('a post that reached the database later after all is there once for its Idempotency-Key', async () => {
    await postBefore();
    proxy.hold('both');
    const headers = { 'idempotency-key': 'once' };
    expectUnavailable(await post('late', headers), UNKNOWN, FLUSH_MS + SLACK_MS);
    await proxy.forward();
    let response = await post('late', headers);
    while (response.status === 503) response = await post('late', headers);
    expect(response.body).toMatchObject({ id: `${group.id}:2` });
    await expectReturn(15_000);
    expect((await texts()).filter((text) => text === 'late')).toEqual(['late']);
  });
});

describe('when the answer of the database is lost after the statement was sent', () => {
  test('the post is 503 and says so, is not repeated, and a repeat with its key is the same message', async () => {
    // This post has a key like the next one, so it prepares the statement of both. The statement's next execution needs
    // no answer of the database before it runs.
    expect((await post('before', { 'idempotency-key': 'first' })).status).toBe(200);
    proxy.hold('answers');
    const headers = { 'idempotency-key': 'once' };
    expectUnavailable(await post('unknown', headers), UNKNOWN, FLUSH_MS + SLACK_MS);
    expect(await texts()).toEqual(['before', 'unknown']);
    await proxy.forward();
    await expectReturn(15_000);
    const again = await post('unknown', headers);
    expect([again.status, again.body.id]).toEqual([200, `${group.id}:2`]);
    expect(await texts()).toEqual(['before', 'unknown', 'are you back']);
  });

  test('a registration says that it may have been done', async () => {
    const reverse = `${group.webhook}/reverse`;
    expect((await readJson(await fetch(reverse))).body).toEqual([]);
    const registered: Promise<JsonAnswer>[] = [];
    await database.query((sql) =>
      sql.begin(async (tx) => {
        await tx`select from conversation_head where conversation_id = ${group.id} for update`;
        registered.push(postJson(reverse, { url: 'http://127.0.0.1:9/' }));
        // When the server waits for this lock, it has looked the token up. From here on, the answers of the database do
        // not reach it.
        await lockWaited(database);
        proxy.hold('answers');
      }),
    );
    const [response] = await Promise.all(registered);
    expect(response?.status).toBe(503);
    const message = 'The hook may have been registered: look at the list before you repeat it';
    expect(response?.body).toEqual({ message });
    await proxy.forward();
    await expectReturn(15_000);
  });

  test('a session that was ended is not good for anything more all the same', async () => {
    const alice = await createPerson(server, 'alice');
    const other = await signIn(server, alice.id);
    // Both tokens are cached now, so the server does not look them up again for a while.
    for (const session of [alice, other]) await callAs(server, session, 'profile.show');
    const ended: Promise<unknown>[] = [];
    await database.query((sql) =>
      sql.begin(async (tx) => {
        await tx`select from session where id = ${other.session} for update`;
        ended.push(callAs(server, alice, 'sessions.end', { session: other.session }).catch((error: unknown) => error));
        await lockWaited(database);
        proxy.hold('answers');
      }),
    );
    expect(await Promise.all(ended)).toEqual([expect.objectContaining({ status: 503, code: 'outcome_unknown' })]);
    await proxy.forward();
    await expectReturn(15_000);
    await expect(callAs(server, other, 'profile.show')).rejects.toMatchObject({ status: 401 });
    await callAs(server, alice, 'profile.show');
  });

  const change = 'The hook may have been changed: look at it before you repeat it; ';
  test.each([
    ['PATCH', '', { rotate_secret: true }, expect.stringContaining(change)],
    [
      'POST',
      '/redeliver',
      { discard_backlog: true },
      'The backlog may have been dropped: look at the hook before you repeat it',
    ],
    ['POST', '/redeliver', { from: '2026-11-20T08:00:00Z' }, expect.stringContaining('may be on their way again')],
    ['POST', '/ping', {}, AWAY.message],
  ])('a hook’s %s%s says what is to be done: %j', async (method, rest, body, message) => {
    const registered = await postJson(`${group.webhook}/reverse`, { url: 'http://127.0.0.1:9/' });
    const url = `${group.webhook}/reverse/${registered.body.id}${rest}`;
    const pending: Promise<JsonAnswer>[] = [];
    await database.query((sql) =>
      sql.begin(async (tx) => {
        await tx`select from reverse_hook where id = ${registered.body.id} for update`;
        pending.push(fetch(url, { method, body: JSON.stringify(body) }).then((response) => readJson(response)));
        await lockWaited(database);
        proxy.hold('answers');
      }),
    );
    const [response] = await Promise.all(pending);
    expect([response?.status, response?.body]).toEqual([503, { message }]);
    expectResponseHeaders(response!);
    await proxy.forward();
    await expectReturn(15_000);
  });
});

/** Resolves when a session of this database waits for a lock. */
async function lockWaited(of: TestDatabase): Promise<void> {
  while ((await waitingSessions(of)).length === 0);
}
