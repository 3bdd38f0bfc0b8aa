import type { Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { within } from '../run/machine-speed.ts';
import { Fixture, selfSigned } from './fixture.ts';
import { OK } from './receiver.ts';

const fixture = new Fixture();
afterEach(() => fixture.close());

const LINE = 'HTTP/1.1 200 OK\r\n';
const CHUNKED = `${LINE}transfer-encoding: chunked\r\n\r\n`;
const NO = 'HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n';
const BATCH = Buffer.alloc(1_048_576, 'x');

describe('DeliveryClient and answers that are meant for the next request', () => {
  test.each([
    ['a second answer', OK + OK],
    ['many answers', OK.repeat(1_000)],
    ['an answer behind a body that is longer than it says', `${LINE}content-length: 0\r\n\r\n${OK}`],
    ['an answer behind a status without body', `HTTP/1.1 204 X\r\ncontent-length: 38\r\n\r\n${OK}`],
    ['an answer behind the last chunk', `${CHUNKED}2\r\nok\r\n0\r\n\r\n${OK}`],
    ['an answer behind a body that is chunked and has a length', `${CHUNKED.trim()}\r\ncontent-length: 1\r\n\r\n${OK}`],
    ['an answer behind line feeds', `${OK}\r\n\r\n\n${OK}`],
    ['an interim answer and an answer', `${OK}HTTP/1.1 100 X\r\n\r\n${OK}`],
    ['the half of an answer', `${OK}HTTP/1.1 200 OK\r\ncontent-len`],
    ['an answer after "connection: close"', `${LINE}connection: close\r\ncontent-length: 0\r\n\r\n${OK}`],
    ['an answer after a switch of protocols', `HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n${OK}`],
  ])('%s confirms nothing', async (_name, answer) => {
    const receiver = await fixture.receiver((socket, { body }) => socket.write(body === 'first' ? answer : NO));
    const client = fixture.client();
    const posts = ['first', 'second', 'third'].map((body) => client.post(receiver.url(), {}, body));
    const [, ...others] = await Promise.all(posts);
    for (const other of others) expect(other).toMatchObject({ delivered: false, category: 'status', code: 500 });
    expect(receiver.requests.find(({ body }) => body === 'second')).toMatchObject({ connection: 2 });
  });

  test('an answer that comes while the connection is idle confirms nothing, and ends it', async () => {
    const receiver = await fixture.receiver((socket, { body }) => socket.write(body === 'first' ? OK : NO));
    const client = fixture.client();
    expect(await client.post(receiver.url(), {}, 'first')).toMatchObject({ delivered: true });
    for (const socket of receiver.sockets) socket.write(OK);
    await receiver.allClosed();
    expect(await client.post(receiver.url(), {}, 'second')).toMatchObject({ delivered: false, code: 500 });
  });
});

describe('DeliveryClient and hostile headers', () => {
  test.each([
    ['names of what every object has', `__proto__: a\r\n__proto__: b\r\nconstructor: c\r\nconstructor: d\r\n`],
    ['a keep-alive beyond all numbers', `keep-alive: timeout=${'9'.repeat(400)}\r\n`],
    ['a keep-alive in the past', 'keep-alive: timeout=-5, max=-1\r\n'],
    ['an upgrade that nobody asked for', 'connection: upgrade\r\nupgrade: h2c\r\n'],
    ['an encoding that would unfold to a hundred times its size', 'content-encoding: gzip, gzip\r\n'],
    ['a place to go to', 'location: http://169.254.169.254/\r\nrefresh: 0; url=/x\r\n'],
  ])('%s changes nothing', async (_name, headers) => {
    const receiver = await fixture.receiver((socket) => socket.write(`${LINE}${headers}content-length: 2\r\n\r\nok`));
    const client = fixture.client();
    for (let n = 0; n < 3; n++) {
      expect(await client.post(receiver.url(), {}, '{}')).toMatchObject({ delivered: true, code: 200, detail: null });
    }
  });

  test.each([
    ['a length below zero', `${LINE}content-length: -1\r\n\r\n`],
    ['a length in hexadecimal', `${LINE}content-length: 0x2\r\n\r\nok`],
    ['a length with a sign', `${LINE}content-length: +2\r\n\r\nok`],
    ['a length past 2^64', `${LINE}content-length: 99999999999999999999\r\n\r\nok`],
    ['two lengths in one line', `${LINE}content-length: 2, 2\r\n\r\nok`],
    ['a folded header', `${LINE}x: a\r\n b\r\ncontent-length: 0\r\n\r\n`],
    ['a NUL', `${LINE}x: a\0b\r\ncontent-length: 0\r\n\r\n`],
    ['a space before a colon', `${LINE}content-length : 0\r\n\r\n`],
    ['lines without returns', 'HTTP/1.1 200 OK\ncontent-length: 0\n\n'],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\ncontent-length: 0\r\n\r\n'],
    ['status 000', `HTTP/1.1 000 X\r\n\r\n${OK}`],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['no status line', 'ok'],
  ])('%s is a failure of the connection', async (_name, answer) => {
    const receiver = await fixture.receiver((socket) => socket.end(answer));
    const attempt = await fixture.client().post(receiver.url(), {}, '{}');
    expect(attempt).toMatchObject({ delivered: false, category: 'connection', code: null });
    expect(receiver.requests).toHaveLength(1);
  });

  test.each([
    ['a reason', 'HTTP/1.1 200 '],
    ['the extension of a chunk', `${CHUNKED}2;`],
    ['a trailer', `${CHUNKED}0\r\nx: `],
    ['a header', `${LINE}x: `],
    ['an interim header', 'HTTP/1.1 103 X\r\nx: '],
    ['a Continue', 'HTTP/1.1 100 X\r\nx: '],
  ])('%s without end ends in time, in bounded memory', async (_name, start) => {
    let written = 0;
    const flood = (socket: Socket): void => {
      while (!socket.destroyed && written < 1 << 30 && socket.write('y'.repeat(65_536))) written += 65_536;
      if (!socket.destroyed) socket.once('drain', () => flood(socket));
    };
    const receiver = await fixture.receiver((socket) => socket.write(start, 'latin1', () => flood(socket)));
    const before = process.memoryUsage().rss;
    const attempt = await fixture
      .client({ responseHeadersTimeoutMs: 500, responseBodyReadMs: 300 })
      .post(receiver.url(), {}, '{}');
    expect(attempt.durationMs).toBeLessThan(within(10_000));
    await receiver.allClosed();
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1_048_576);
  });
});

describe('DeliveryClient and receivers that do not read', () => {
  test.each(['http', 'https'])(
    'over %s one that answers and reads nothing gets no second request behind the first',
    async (scheme) => {
      const tls = scheme === 'https' ? selfSigned() : undefined;
      const receiver = await fixture.receiver(() => {}, tls);
      receiver.onConnection = (socket) => {
        // The receiver sends answers for ever, without reading requests.
        const timer = setInterval(() => socket.write(OK), 10);
        socket.pause().once('close', () => clearInterval(timer));
      };
      const client = fixture.client(tls === undefined ? {} : { ca: tls.cert });
      const url = receiver.url();
      for (let n = 0; n < 40; n++) await client.post(url, {}, BATCH);
      // The kernel buffers some of the requests; the server keeps none of the rest.
      expect(receiver.connections).toBeGreaterThan(4);
    },
  );

  test('a receiver that reads nothing and answers nothing costs one attempt its time, and gives its memory back', async () => {
    // The test makes V8 collect: unreachable objects count until then, and an idle process need not collect.
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    // This collection frees the memory that other tests in this process used, so that the measurement leaves it out.
    collect();
    const before = process.memoryUsage().arrayBuffers;
    const receiver = await fixture.receiver(() => {});
    receiver.onConnection = (socket) => socket.pause();
    const client = fixture.client({ responseHeadersTimeoutMs: 200, maxInFlightPerHost: 16 });
    for (let round = 0; round < 3; round++) {
      const posts = Array.from({ length: 16 }, () => client.post(receiver.url(), {}, BATCH));
      for (const post of posts) expect(await post).toMatchObject({ category: 'timeout', code: null });
    }
    await eventually(
      async () => {
        collect();
        return process.memoryUsage().arrayBuffers - before;
      },
      (bytes) => bytes < 64 * 1_048_576,
    );
  });
});
