import { createServer, type Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { expectResponseHeaders, request } from '../http/wire.ts';
import { within } from '../run/machine-speed.ts';
import { postJson, readJson, TestServer, type JsonAnswer, type TestGroup } from '../support/server.ts';

const NOT_FOUND = { status: 'Webhook with given id not found', message: 'Webhook with given id not found' };
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

let server: TestServer;
let group: TestGroup;
beforeAll(async () => {
  server = await TestServer.start({
    limits: { hookRegistrationsPerGroupPerMinute: 100_000 },
    postgresql: { lockTimeoutMs: 60_000, databaseCallTimeoutMs: 60_000 },
    http: { requestToResponseTimeoutMs: 60_000 },
  });
  group = await server.createGroup();
});
afterAll(() => server.stop());

async function get(url: string): Promise<JsonAnswer> {
  const answer = await readJson(await fetch(url));
  expectResponseHeaders(answer);
  return answer;
}

async function remove(url: string): Promise<JsonAnswer> {
  const answer = await readJson(await fetch(url, { method: 'DELETE' }));
  expectResponseHeaders(answer);
  return answer;
}

async function register(url: string, to: TestGroup = group): Promise<number> {
  const answer = await postJson(`${to.webhook}/reverse`, { url });
  expect(answer.status).toBe(201);
  return answer.body.id;
}

describe('the list', () => {
  test('is [] without hooks', async () => {
    const empty = await server.createGroup('Empty');
    const answer = await get(`${empty.webhook}/reverse`);
    expect([answer.status, answer.body]).toEqual([200, []]);
  });

  test('has every hook of the group, oldest first, and no other group’s', async () => {
    const [mine, other] = [await server.createGroup('Mine'), await server.createGroup('Other')];
    const urls = ['https://z.example/', 'https://a.example/', 'https://m.example/'];
    const ids: number[] = [];
    for (const url of urls) {
      ids.push(await register(url, mine));
      await register(url, other);
    }
    const answer = await get(`${mine.webhook}/reverse/`);
    expect(answer.body).toEqual(urls.map((url, index) => ({ id: ids[index], url, state: 'active', pending: 0 })));
    await remove(`${mine.webhook}/reverse/${ids[1]}`);
    expect((await get(`${mine.webhook}/reverse`)).body.map((hook: { id: number }) => hook.id)).toEqual([
      ids[0],
      ids[2],
    ]);
  });
});

describe('the check', () => {
  test('of a hook that nothing was sent to yet is Ok and empty', async () => {
    const id = await register('https://example.com/unused');
    const answer = await get(`${group.webhook}/reverse/${id}`);
    expect([answer.status, answer.body]).toEqual([
      200,
      {
        status: 'Ok',
        state: 'active',
        pending: 0,
        oldest_pending_at: null,
        last_success_at: null,
        last_error: null,
        next_attempt_at: null,
      },
    ]);
    expect((await get(`${group.webhook}/reverse/${id}/`)).status).toBe(200);
  });

  test('tells how many messages wait since when, and why', async () => {
    const receiver = await receiving(500);
    try {
      const waiting = await server.createGroup('Waiting');
      await postJson(waiting.webhook, { text: 'before the hook' });
      const id = await register(receiver.url, waiting);
      const url = `${waiting.webhook}/reverse/${id}`;
      const before = Date.now();
      for (const text of ['one', 'two', 'three']) await postJson(waiting.webhook, { text });
      const { status, body } = await settled(url, (check) => check.last_error !== null);
      expect(status).toBe(200);
      expect(body).toEqual({
        status: 'Ok',
        state: 'failing',
        pending: 3,
        oldest_pending_at: expect.stringMatching(ISO_TIME),
        last_success_at: null,
        last_error: { at: expect.stringMatching(ISO_TIME), category: 'status', code: 500 },
        next_attempt_at: expect.stringMatching(ISO_TIME),
      });
      expect(Math.abs(Date.parse(body.oldest_pending_at) - before)).toBeLessThan(5_000);
      expect((await get(`${waiting.webhook}/reverse`)).body).toEqual([
        { id, url: receiver.url, state: 'failing', pending: 3 },
      ]);
    } finally {
      await receiver.stop();
    }
  });

  test('names the category when nobody listens at the target', async () => {
    const receiver = await receiving(200);
    await receiver.stop();
    const unheard = await server.createGroup('Unheard');
    const id = await register(receiver.url, unheard);
    await postJson(unheard.webhook, { text: 'x' });
    const { body } = await settled(`${unheard.webhook}/reverse/${id}`, (check) => check.last_error !== null);
    expect(body).toMatchObject({ state: 'failing', pending: 1, last_error: { category: 'refused', code: null } });
  });

  test('tells when a message was delivered last', async () => {
    const receiver = await receiving(200);
    try {
      const served = await server.createGroup('Served');
      const id = await register(receiver.url, served);
      await postJson(served.webhook, { text: 'x' });
      const { body } = await settled(`${served.webhook}/reverse/${id}`, (check) => check.last_success_at !== null);
      expect(body).toMatchObject({ status: 'Ok', state: 'active', pending: 0, last_error: null });
      expect(body.last_success_at).toMatch(ISO_TIME);
    } finally {
      await receiver.stop();
    }
  });
});

describe('a hook that does not exist', () => {
  const ids = ['0', '-1', '1.5', 'abc', '1a', '01', '%20', '2147483647', '2147483648', '99999999999', '9'.repeat(400)];

  test.each([...ids, '%E0%A4%A', '1%00', '%D9%A3', '+1', '1e3'])('is 410 with both keys: %s', async (id) => {
    for (const method of ['GET', 'DELETE']) {
      const path = `/v1/webhooks/${group.token}/reverse/${id}`;
      const answer = await request(server.port, { method, path });
      expect([method, answer.status, answer.body]).toEqual([method, 410, NOT_FOUND]);
      expectResponseHeaders(answer);
    }
  });

  test('is 410 by HEAD, without a body', async () => {
    const answer = await request(server.port, { method: 'HEAD', path: `/v1/webhooks/${group.token}/reverse/0` });
    expect([answer.status, answer.text]).toEqual([410, '']);
  });

  test('is one of another group, whichever token is tried', async () => {
    const other = await server.createGroup('Another');
    const id = await register('https://example.com/theirs', other);
    expect((await get(`${group.webhook}/reverse/${id}`)).body).toEqual(NOT_FOUND);
    expect((await remove(`${group.webhook}/reverse/${id}`)).status).toBe(410);
    expect((await get(`${other.webhook}/reverse/${id}`)).status).toBe(200);
  });
});

describe('unregistering', () => {
  test('is 202 once and 410 from then on', async () => {
    const id = await register('https://example.com/leaving');
    const url = `${group.webhook}/reverse/${id}`;
    const first = await remove(url);
    expect([first.status, first.body]).toEqual([202, { status: 'Ok' }]);
    for (const again of [await remove(url), await get(url)]) {
      expect([again.status, again.body]).toEqual([410, NOT_FOUND]);
    }
  });

  test('is 202 for one of those who try at once', async () => {
    const id = await register('https://example.com/contested');
    const tries = Array.from({ length: 8 }, () => remove(`${group.webhook}/reverse/${id}/`));
    const statuses = (await Promise.all(tries)).map((answer) => answer.status).sort((a, b) => a - b);
    expect(statuses).toEqual([202, ...Array<number>(7).fill(410)]);
  });

  test('ignores a body', async () => {
    const id = await register('https://example.com/with-body');
    const path = `/v1/webhooks/${group.token}/reverse/${id}`;
    const answer = await request(server.port, { method: 'DELETE', path, body: 'anything' });
    expect([answer.status, answer.body]).toEqual([202, { status: 'Ok' }]);
  });
});

/** Starts a receiver that answers every request with one status. */
async function receiving(status: number): Promise<{ url: string; stop: () => Promise<void> }> {
  const receiver: HttpServer = createServer((req, res) => {
    req.resume();
    res.writeHead(status).end();
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const { port } = receiver.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    stop: async () => {
      receiver.closeAllConnections();
      await new Promise((resolve) => receiver.close(resolve));
    },
  };
}

/** Polls the health of a hook until `wanted` is true of it, for at most 10 s. */
async function settled(url: string, wanted: (check: JsonAnswer['body']) => boolean): Promise<JsonAnswer> {
  const started = performance.now();
  for (;;) {
    const answer = await get(url);
    if (wanted(answer.body)) return answer;
    expect({ ...answer.body, late: performance.now() - started > within(10_000) }).toMatchObject({ late: false });
    await new Promise(setImmediate);
  }
}
