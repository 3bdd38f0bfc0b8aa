import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { within } from '../run/machine-speed.ts';
import { postJson, TestServer, type JsonAnswer, type TestGroup } from '../support/server.ts';
import type { ConfigChanges } from '../support/config.ts';
import { expectResponseHeaders, request, requestBytes, storedMessages, Wire } from './wire.ts';

const RATE_EXCEEDED = {
  message: 'This token is used faster than it may be; nothing was done, please repeat it later',
};
const INTAKE_FULL = { message: 'The server has too many messages waiting; this one was not posted, please repeat it' };
const TIMED_OUT = { message: 'The request was not complete in time: please send it again' };

let server: TestServer;
const servers: TestServer[] = [];
afterEach(async () => {
  for (const started of servers.splice(0)) await started.stop();
});

async function start(changes: ConfigChanges): Promise<TestGroup> {
  server = await TestServer.start(changes);
  servers.push(server);
  return server.createGroup();
}

async function timed<T>(work: Promise<T>): Promise<[T, number]> {
  const started = performance.now();
  const result = await work;
  return [result, performance.now() - started];
}

const post = (group: TestGroup, text: string): Promise<JsonAnswer> => postJson(group.webhook, { text });

describe('the rate of a token', () => {
  test('lets a burst through, makes a post wait for its turn, and refuses what would wait longer', async () => {
    const group = await start({
      limits: { postsPerSecondPerToken: 0.25, postBurstPerToken: 2, tokenQueueTimeoutMs: 6_000 },
    });
    const posts = ['1', '2', '3', '4'].map((text) => timed(post(group, text)));
    const responses = await Promise.all(posts);
    const accepted = responses.filter(([response]) => response.status === 200).map(([, ms]) => ms);
    const refused = responses.filter(([response]) => response.status !== 200);
    expect([accepted.length, refused.length]).toEqual([3, 1]);
    // The third post is due four seconds after the burst; timers may be a little early.
    expect(Math.max(...accepted)).toBeGreaterThan(3_500);
    const [response, ms] = refused[0]!;
    expect([response.status, response.body]).toEqual([503, RATE_EXCEEDED]);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
    expectResponseHeaders(response);
    // The refused post did not wait, so its answer came before that of the post that did.
    expect(ms).toBeLessThan(Math.max(...accepted));
    expect(await storedMessages(server, group)).toHaveLength(3);
  });

  test('is one for each group', async () => {
    const group = await start({
      limits: { postsPerSecondPerToken: 0.01, postBurstPerToken: 1, tokenQueueTimeoutMs: 0 },
    });
    expect((await post(group, 'x')).status).toBe(200);
    expect((await post(group, 'x')).status).toBe(503);
    expect((await post(await server.createGroup('Other'), 'x')).status).toBe(200);
  });

  test('is not spent by tokens that do not exist', async () => {
    const group = await start({
      limits: { postsPerSecondPerToken: 0.01, postBurstPerToken: 1, tokenQueueTimeoutMs: 0 },
    });
    for (let i = 0; i < 5; i += 1) {
      expect((await postJson(`${server.url}/v1/webhooks/${'x'.repeat(43)}`, { text: 'x' })).status).toBe(404);
    }
    expect((await post(group, 'x')).status).toBe(200);
  });
});

describe('answers about unknown tokens', () => {
  const paths = [
    `/v1/webhooks/${'x'.repeat(43)}`,
    '/v1/webhooks/short/reverse',
    `/v1/webhooks/${'y'.repeat(43)}/status`,
  ];

  test('are slowed for a source that asks for many, on every route together', async () => {
    await start({ limits: { unknownTokensPerSecondPerSource: 1 } });
    // The server answers five requests at once, and the last of the nine after four seconds. Later requests do not
    // shorten that.
    const all = Array.from({ length: 9 }, (_, i) => request(server.port, { path: paths[i % 3]! }));
    const [responses, ms] = await timed(Promise.all(all));
    for (const { status } of responses) expect([404, 410]).toContain(status);
    expect(ms).toBeGreaterThan(3_500);
  });

  test('do not slow a valid token of the same source', async () => {
    const group = await start({ limits: { unknownTokensPerSecondPerSource: 1 } });
    // The server answers five requests at once, and the last of the nine after four seconds.
    const unknown = Promise.all(Array.from({ length: 9 }, () => request(server.port, { path: paths[0]! })));
    const first = await Promise.race([post(group, 'x').then(({ status }) => status), unknown]);
    expect(first).toBe(200);
    await unknown;
  });

  test('are counted by what a trusted proxy says, and by nobody else’s word', async () => {
    await start({ limits: { unknownTokensPerSecondPerSource: 1 }, http: { trustedProxies: ['127.0.0.1'] } });
    const from = (client: string): Promise<unknown> =>
      request(server.port, { path: paths[0]!, headers: { 'x-forwarded-for': client } });
    // The server answers five requests at once, and the last of the nine after four seconds.
    const same = timed(Promise.all(Array.from({ length: 9 }, () => from('192.0.2.1'))));
    const other = from('192.0.2.2').then(() => 'other');
    expect(await Promise.race([other, same])).toBe('other');
    expect((await same)[1]).toBeGreaterThan(3_500);

    await start({ limits: { unknownTokensPerSecondPerSource: 1 } });
    const [, claimed] = await timed(Promise.all(Array.from({ length: 9 }, (_, i) => from(`192.0.2.${i}`))));
    expect(claimed).toBeGreaterThan(3_500);
  });

  test.each([
    ['a token in the path', 'POST', paths[0]!],
    ['an invitation', 'GET', `/v1/groups/invites/${'x'.repeat(43)}`],
  ])('are counted for the whole network of one IPv6 customer: %s', async (_what, method, path) => {
    await start({ limits: { unknownTokensPerSecondPerSource: 1 }, http: { trustedProxies: ['127.0.0.1'] } });
    const from = (client: string): Promise<unknown> =>
      request(server.port, { method, path, headers: { 'x-forwarded-for': client } });
    // The server answers five requests at once, and the last of the nine after four seconds.
    const [, ms] = await timed(Promise.all(Array.from({ length: 9 }, (_, i) => from(`2001:db8:1:2::${i + 1}`))));
    expect(ms).toBeGreaterThan(3_500);
  });
});

describe('the intake queue', () => {
  test('refuses posts past its bound with 503, keeps what it has, and takes more when there is room', async () => {
    const group = await start({ limits: { intakePosts: 3 } });
    expect((await post(group, 'before')).status).toBe(200);
    const waiting: Promise<JsonAnswer>[] = [];
    await server.database.query((sql) =>
      sql.begin(async (tx) => {
        await tx`select from conversation_head where conversation_id = ${group.id} for update`;
        const all = Array.from({ length: 8 }, (_, i) => post(group, `${i}`));
        // Five of the requests are answered while the lock is still held.
        const refused: JsonAnswer[] = [];
        await new Promise<void>((resolve) => {
          for (const one of all) {
            void one.then((result) => {
              refused.push(result);
              if (refused.length === 5) resolve();
            });
          }
        });
        for (const response of refused) {
          expect([response.status, response.body]).toEqual([503, INTAKE_FULL]);
          expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
          expectResponseHeaders(response);
        }
        waiting.push(...all);
      }),
    );
    const statuses = (await Promise.all(waiting)).map((response) => response.status).sort((a, b) => a - b);
    expect(statuses).toEqual([200, 200, 200, 503, 503, 503, 503, 503]);
    expect((await post(group, 'after')).status).toBe(200);
    expect(await storedMessages(server, group)).toHaveLength(5);
  });

  test('has a bound in bytes, too', async () => {
    const group = await start({ limits: { intakeBytes: 30_000 } });
    expect((await post(group, 'x'.repeat(20_000))).status).toBe(200);
    const response = await post(group, 'x'.repeat(40_000));
    expect([response.status, response.body]).toEqual([503, INTAKE_FULL]);
  });

  test('lets other groups through while one is locked', async () => {
    const group = await start({});
    const other = await server.createGroup('Other');
    await post(group, 'x');
    const locked: Promise<JsonAnswer>[] = [];
    await server.database.query((sql) =>
      sql.begin(async (tx) => {
        await tx`select from conversation_head where conversation_id = ${group.id} for update`;
        locked.push(post(group, 'locked'));
        for (let i = 0; i < 3; i += 1) expect((await post(other, `${i}`)).status).toBe(200);
      }),
    );
    expect((await Promise.all(locked)).map((response) => response.status)).toEqual([200]);
  });

  test('registers a hook or says 503 while its group is locked, never 500', async () => {
    const group = await start({});
    await server.database.query((sql) =>
      sql.begin(async (tx) => {
        await tx`select from conversation_head where conversation_id = ${group.id} for update`;
        const response = await postJson(`${group.webhook}/reverse`, { url: 'http://127.0.0.1:9/' });
        expect(response.status).toBe(503);
        expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
      }),
    );
    expect((await postJson(`${group.webhook}/reverse`, { url: 'http://127.0.0.1:9/' })).status).toBe(201);
  });
});

describe('a slow request', () => {
  let slow: TestServer;
  let group: TestGroup;
  beforeAll(async () => {
    slow = await TestServer.start({ http: { requestToResponseTimeoutMs: 1_500 } });
    group = await slow.createGroup();
  });
  afterAll(() => slow.stop());

  /** Writes one byte of `bytes` every 50 ms until the connection closes. The returned function stops the writing. */
  function drip(wire: Wire, bytes: Buffer): () => void {
    let at = 0;
    const timer = setInterval(() => {
      if (!wire.isClosed && at < bytes.length) wire.write(bytes.subarray(at, (at += 1)));
    }, 50);
    return () => clearInterval(timer);
  }

  async function expectTimeOut(first: string | Buffer, rest: Buffer): Promise<void> {
    const wire = await Wire.open(slow.port);
    wire.write(first);
    const stop = drip(wire, rest);
    const [response, ms] = await timed(wire.response());
    expect([response.status, response.body]).toEqual([408, TIMED_OUT]);
    expect(response.headers.get('connection')).toBe('close');
    expectResponseHeaders(response);
    expect(ms).toBeLessThan(within(15_000));
    await wire.ended();
    stop();
    expect((await fetch(`${slow.url}/v1/status`)).status).toBe(200);
  }

  test('with a body that comes byte by byte is 408 and closed, and is not posted', async () => {
    const headers = { 'content-length': '1000', 'content-type': 'text/plain' };
    const head = requestBytes({ path: `/v1/webhooks/${group.token}`, headers });
    await expectTimeOut(head, Buffer.alloc(1_000, 'a'));
    expect(await storedMessages(slow, group)).toEqual([]);
  });

  test('with chunks that come byte by byte is 408 and closed', async () => {
    const head = requestBytes({ path: `/v1/webhooks/${group.token}`, headers: { 'transfer-encoding': 'chunked' } });
    await expectTimeOut(head, Buffer.from('1\r\na\r\n'.repeat(100)));
    expect(await storedMessages(slow, group)).toEqual([]);
  });

  test('with a body that never comes is 408 and closed', async () => {
    const path = `/v1/webhooks/${group.token}`;
    await expectTimeOut(requestBytes({ path, headers: { 'content-length': '5' } }), Buffer.alloc(0));
  });

  test('with headers that come byte by byte is 408 and closed', async () => {
    await expectTimeOut('POST /v1/webh', Buffer.from(`ooks/x HTTP/1.1\r\nhost: x\r\n${'x-a: b\r\n'.repeat(100)}`));
  });

  test('that is announced with Expect: 100-continue and never sent is 408 and closed', async () => {
    const wire = await Wire.open(slow.port);
    const headers = { 'content-length': '5', expect: '100-continue' };
    wire.write(requestBytes({ path: `/v1/webhooks/${group.token}`, headers }));
    expect((await wire.response()).status).toBe(100);
    expect((await wire.response()).status).toBe(408);
    await wire.ended();
  });

  test('that is only a connection is ended', async () => {
    const wire = await Wire.open(slow.port);
    const [, ms] = await timed(wire.ended());
    expect(ms).toBeLessThan(within(15_000));
  });

  test('that waits for the database is 503 in the same time, and says that it may have been posted', async () => {
    await slow.database.query((sql) =>
      sql.begin(async (tx) => {
        await tx`select from conversation_head where conversation_id = ${group.id} for update`;
        const response = await post(group, 'x');
        expect(response.status).toBe(503);
        const message = 'This took too long: it may have been posted. Repeating a post is safe with an Idempotency-Key';
        expect(response.body).toEqual({ message });
        expect(response.headers.get('retry-after')).toBe('2');
      }),
    );
  });
});

describe('a request that is too large before its body', () => {
  test('is 431 past 16 KiB of headers, or of a path, and the connection is closed', async () => {
    await start({});
    for (const large of [
      { path: '/v1/status', headers: { 'x-large': 'a'.repeat(17 * 1_024) } },
      { path: `/v1/webhooks/${'a'.repeat(17 * 1_024)}` },
      {
        path: '/v1/status',
        headers: Object.fromEntries(Array.from({ length: 1_500 }, (_, i) => [`x-${i}`, 'abcdef'])),
      },
    ]) {
      const wire = await Wire.open(server.port);
      wire.write(requestBytes({ method: 'GET', ...large }));
      const response = await wire.response();
      expect([response.status, response.body]).toEqual([
        431,
        { message: 'The headers are larger than http.max-header-size allows' },
      ]);
      expect(response.headers.get('connection')).toBe('close');
      expectResponseHeaders(response);
      await wire.ended();
    }
    expect((await fetch(`${server.url}/v1/status`)).status).toBe(200);
  });
});
