import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { within } from '../run/machine-speed.ts';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';
import { expectResponseHeaders, request, requestBytes, storedMessages, Wire } from './wire.ts';

const BROKEN = { message: 'This is not a request that HTTP/1.1 allows' };

let server: TestServer;
let group: TestGroup;
beforeAll(async () => {
  server = await TestServer.start();
  group = await server.createGroup();
});
afterAll(() => server.stop());

/** The bytes of a whole request that posts a text. */
function postBytes(text: string, more: Record<string, string> = {}): Buffer {
  const headers = { 'content-type': 'text/plain', ...more };
  return requestBytes({ path: `/v1/webhooks/${group.token}`, headers, body: text });
}

async function expectAlive(): Promise<void> {
  expect((await postJson(group.webhook, { text: 'alive' })).status).toBe(200);
}

async function texts(): Promise<string[]> {
  return (await storedMessages(server, group)).map((message) => message.text);
}

describe('a client', () => {
  test('that closes its side after its request still gets the answer', async () => {
    const wire = await Wire.open(server.port);
    wire.write(postBytes('half closed'));
    wire.end();
    expect((await wire.response()).status).toBe(200);
    await wire.ended();
  });

  test('that closes its side after many requests gets all the answers', async () => {
    const wire = await Wire.open(server.port);
    wire.write(Buffer.concat(Array.from({ length: 10 }, (_, i) => postBytes(`closing ${i}`))));
    wire.end();
    for (let i = 0; i < 10; i += 1) expect((await wire.response()).status).toBe(200);
    await wire.ended();
  });

  test('that sends requests without waiting gets their answers in order', async () => {
    const wire = await Wire.open(server.port);
    const count = (await texts()).length;
    wire.write(Buffer.concat([postBytes('p1'), requestBytes({ method: 'GET', path: '/v1/status' }), postBytes('p2')]));
    wire.write(requestBytes({ path: '/nowhere' }));
    expect((await wire.response()).body.id).toBe(`${group.id}:${count + 1}`);
    expect((await wire.response()).body).toEqual({ status: 'Ok' });
    expect((await wire.response()).body.id).toBe(`${group.id}:${count + 2}`);
    expect((await wire.response()).status).toBe(404);
    wire.close();
  });

  test('that sends garbage behind a request gets the answer to the request first', async () => {
    for (const pause of [false, true]) {
      const wire = await Wire.open(server.port);
      const count = (await texts()).length;
      wire.write(Buffer.concat([postBytes('valid'), postBytes('valid, too'), pause ? Buffer.alloc(0) : garbage]));
      if (pause) wire.write(garbage);
      expect((await wire.response()).body.id).toBe(`${group.id}:${count + 1}`);
      expect((await wire.response()).body.id).toBe(`${group.id}:${count + 2}`);
      const last = await wire.response();
      expect([last.status, last.body]).toEqual([400, BROKEN]);
      await wire.ended();
    }
  });

  test('that sends its request byte by byte is served', async () => {
    const wire = await Wire.open(server.port);
    for (const byte of postBytes('slowly')) {
      wire.write(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    expect((await wire.response()).status).toBe(200);
    wire.close();
  });

  test('that breaks off at any point leaves the server alive', async () => {
    const bytes = postBytes('broken off', { 'idempotency-key': 'broken-off' });
    for (let length = 0; length <= bytes.length; length += 7) {
      const wire = await Wire.open(server.port);
      wire.write(bytes.subarray(0, length));
      wire.close();
    }
    await expectAlive();
  });

  test('that never reads does not make the server hold its answers without bound', async () => {
    const wire = await Wire.open(server.port);
    wire.pause();
    const requests = Buffer.concat(
      Array.from({ length: 1_000 }, () => requestBytes({ method: 'GET', path: '/v1/about' })),
    );
    // Of these 400,000 requests, those that the server does not read stay with the client.
    let isTaken = true;
    for (let i = 0; i < 400; i += 1) isTaken = wire.write(requests);
    expect(isTaken).toBe(false);
    const before = process.memoryUsage().external + process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 50; i += 1) await expectAlive();
    expect(wire.pending).toBeGreaterThan(1_000_000);
    expect(process.memoryUsage().external + process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 1024 * 1024);
    wire.close();
  });

  test('that opens 200 connections and leaves them idle does not keep others out', async () => {
    const idle = await Promise.all(Array.from({ length: 200 }, () => Wire.open(server.port)));
    await expectAlive();
    expect(idle.filter((wire) => wire.isClosed)).toEqual([]);
    for (const wire of idle.slice(0, 100)) wire.close();
    await expectAlive();
    for (const wire of idle) wire.close();
  });

  test('that uses one connection for many requests keeps it', async () => {
    const wire = await Wire.open(server.port);
    for (let i = 0; i < 20; i += 1) {
      wire.write(i % 2 === 0 ? postBytes('kept') : requestBytes({ path: '/v1/webhooks/x', body: 'x' }));
      expect((await wire.response()).status).toBe(i % 2 === 0 ? 200 : 404);
    }
    wire.close();
  });

  test('that speaks HTTP/1.0 gets an answer and the end of the connection', async () => {
    const wire = await Wire.open(server.port);
    wire.write(requestBytes({ path: `/v1/webhooks/${group.token}`, body: 'old', version: '1.0' }));
    expect((await wire.response()).status).toBe(200);
    await wire.ended();
  });

  test('that wants another protocol, or expects something, is served in this one', async () => {
    const upgrade = postBytes('upgrade', { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c' });
    for (const bytes of [upgrade, postBytes('expecting', { expect: 'a miracle' })]) {
      const wire = await Wire.open(server.port);
      wire.write(bytes);
      expect((await wire.response()).status).toBe(200);
      wire.close();
    }
  });

  test('that asks for a tunnel gets none', async () => {
    const wire = await Wire.open(server.port);
    wire.write('CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n');
    await wire.ended();
    await expectAlive();
  });
});

const garbage = Buffer.from('\u0016\u0003\u0001\u0002\u0000\u0001\r\n\r\n');

describe('what is no request', () => {
  test.each([
    ['a TLS greeting', garbage],
    ['words', Buffer.from('hello there\r\n\r\n')],
    ['an unknown method', Buffer.from('FETCH / HTTP/1.1\r\nhost: x\r\n\r\n')],
    ['another version', Buffer.from('GET / HTTP/9.9\r\nhost: x\r\n\r\n')],
    ['HTTP/2 at once', Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')],
    ['a header without a colon', Buffer.from('GET / HTTP/1.1\r\nhost x\r\n\r\n')],
    ['NUL in a header', Buffer.from('GET / HTTP/1.1\r\nhost: x\r\nx-a: \u0000\r\n\r\n')],
    ['a space in the path', Buffer.from('GET /a b HTTP/1.1\r\nhost: x\r\n\r\n')],
    ['a length that is none', Buffer.from('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n')],
    ['two lengths', Buffer.from('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab')],
    [
      'a length and chunks',
      Buffer.from('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'),
    ],
    ['random bytes', Buffer.from(Array.from({ length: 4_000 }, (_, i) => (i * 7_919 + 13) % 251))],
  ])('is 400 in JSON and closed: %s', async (_, bytes) => {
    const wire = await Wire.open(server.port);
    wire.write(bytes);
    const response = await wire.response();
    expect([response.status, response.body]).toEqual([400, BROKEN]);
    expect(response.headers.get('connection')).toBe('close');
    expectResponseHeaders(response);
    await wire.ended();
  });

  test('is 400 for broken chunks, and nothing is posted', async () => {
    const before = (await texts()).length;
    const wire = await Wire.open(server.port);
    const headers = { 'transfer-encoding': 'chunked', 'content-type': 'text/plain' };
    wire.write(requestBytes({ path: `/v1/webhooks/${group.token}`, headers }));
    wire.write('5\r\nhello\r\nzz\r\n');
    const response = await wire.response();
    expect([response.status, response.body]).toEqual([400, BROKEN]);
    expectResponseHeaders(response);
    await wire.ended();
    expect(await texts()).toHaveLength(before);
  });

  test('is 400 for a transfer coding that is not known, and nothing is posted', async () => {
    const before = (await texts()).length;
    const wire = await Wire.open(server.port);
    const headers = { 'transfer-encoding': 'gzip', 'content-type': 'text/plain' };
    wire.write(requestBytes({ path: `/v1/webhooks/${group.token}`, headers, body: 'hello' }));
    const response = await wire.response();
    expect(response.status).toBe(400);
    expectResponseHeaders(response);
    await wire.ended();
    expect(await texts()).toHaveLength(before);
  });

  test('is 400 in JSON for a request without Host', async () => {
    const wire = await Wire.open(server.port);
    wire.write(`GET /v1/status HTTP/1.1\r\n\r\n`);
    const response = await wire.response();
    expect([response.status, response.body]).toEqual([400, BROKEN]);
    expectResponseHeaders(response);
    wire.close();
    expect((await request(server.port, { method: 'GET', path: '/v1/status', version: '1.0' })).status).toBe(200);
  });
});

describe('stopping', () => {
  test('does not wait for idle connections, and answers what is in hand', async () => {
    const stopped = await TestServer.start();
    const own = await stopped.createGroup();
    const idle = await Wire.open(stopped.port);
    const used = await Wire.open(stopped.port);
    used.write(requestBytes({ method: 'GET', path: '/v1/status' }));
    expect((await used.response()).status).toBe(200);
    const inHand = Array.from({ length: 20 }, (_, i) => postJson(own.webhook, { text: `${i}` }));
    // At the first answer the other requests have arrived, or will find the port closed.
    await Promise.race(inHand);
    const started = performance.now();
    const settled = Promise.allSettled(inHand);
    await stopped.stop();
    expect(performance.now() - started).toBeLessThan(within(9_000));
    for (const result of await settled) {
      if (result.status === 'fulfilled') expect([200, 503]).toContain(result.value.status);
    }
    await Promise.all([idle.ended(), used.ended()]);
  });
});
