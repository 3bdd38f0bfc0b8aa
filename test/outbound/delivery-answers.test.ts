import type { Socket } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { within } from '../run/machine-speed.ts';
import { Fixture } from './fixture.ts';
import { OK } from './receiver.ts';

const fixture = new Fixture();
afterEach(() => fixture.close());

/** Writes `chunk` as long as the other side reads. */
function writeForEver(socket: Socket, chunk: string): void {
  while (!socket.destroyed && socket.write(chunk));
  if (!socket.destroyed) socket.once('drain', () => writeForEver(socket, chunk));
}

function trickle(socket: Socket): void {
  const timer = setInterval(() => socket.write('x'), 5);
  socket.once('close', () => clearInterval(timer));
}

describe('DeliveryClient and answers', () => {
  test('sends one POST with the headers and the body as given', async () => {
    const receiver = await fixture.receiver((socket) => socket.write(OK));
    const headers = { 'content-type': 'application/json', 'webhook-id': '1_2_3' };
    const text = await fixture.client().post(receiver.url('127.0.0.1', '/a/b?c=d&e'), headers, '{"a":"ü"}');
    const bytes = await fixture.client().post(receiver.url('127.0.0.1', '/'), {}, Buffer.from([1, 2, 255]));
    expect([text.delivered, bytes.delivered]).toEqual([true, true]);
    const [first, second] = receiver.requests;
    expect(first?.head.split('\r\n')[0]).toBe('POST /a/b?c=d&e HTTP/1.1');
    expect(first?.head).toContain(`\r\nhost: 127.0.0.1:${receiver.port}\r\n`);
    expect(first?.head).toContain('\r\nuser-agent: Klatch/test\r\n');
    expect(first?.head).toContain('\r\nwebhook-id: 1_2_3\r\n');
    expect(first?.head).toContain('\r\ncontent-length: 10');
    expect(Buffer.from(first?.body ?? '', 'latin1').toString()).toBe('{"a":"ü"}');
    expect(Buffer.from(second?.body ?? '', 'latin1')).toEqual(Buffer.from([1, 2, 255]));
  });

  test.each([200, 201, 202, 204, 299])('%d is a success', async (code) => {
    const receiver = await fixture.receiver((socket) =>
      socket.write(`HTTP/1.1 ${code} X\r\ncontent-length: 0\r\n\r\n`),
    );
    expect(await fixture.client().post(receiver.url(), {}, '{}')).toMatchObject({
      delivered: true,
      category: null,
      code,
      retryAfterMs: null,
    });
  });

  test.each([300, 304, 400, 404, 410, 413, 422, 429, 500, 503, 599])('%d is a failure of status', async (code) => {
    const receiver = await fixture.receiver((socket) =>
      socket.write(`HTTP/1.1 ${code} X\r\ncontent-length: 0\r\n\r\n`),
    );
    expect(await fixture.client().post(receiver.url(), {}, '{}')).toMatchObject({
      delivered: false,
      category: 'status',
      code,
    });
  });

  test.each([301, 302, 303, 307, 308])('a redirect %d is not followed', async (code) => {
    const receiver = await fixture.receiver((socket) =>
      socket.write(`HTTP/1.1 ${code} X\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n`),
    );
    const attempt = await fixture.client().post(receiver.url(), {}, '{}');
    expect(attempt).toMatchObject({ delivered: false, category: 'status', code });
    expect(receiver.requests).toHaveLength(1);
  });

  test('Retry-After is read from failures only', async () => {
    const codes = [503, 429, 200];
    const receiver = await fixture.receiver((socket) =>
      socket.write(`HTTP/1.1 ${codes.shift()} X\r\nRetry-After: 120\r\ncontent-length: 0\r\n\r\n`),
    );
    const client = fixture.client();
    const waits = [];
    for (let n = 0; n < 3; n++) waits.push((await client.post(receiver.url(), {}, '{}')).retryAfterMs);
    expect(waits).toEqual([120_000, 120_000, null]);
  });

  const unfinished: [string, (socket: Socket) => void][] = [
    ['endless', (socket) => writeForEver(socket, 'x'.repeat(65_536))],
    ['trickling', trickle],
    ['silent', () => {}],
    ['reset', (socket) => socket.resetAndDestroy()],
    ['closed early', (socket) => socket.end('x')],
  ];

  test.each(unfinished)('a body that is %s changes neither success nor failure', async (_name, body) => {
    for (const code of [200, 500]) {
      const receiver = await fixture.receiver((socket) => {
        socket.write(`HTTP/1.1 ${code} X\r\ncontent-length: 10000000000\r\n\r\nstart`, () => body(socket));
      });
      const attempt = await fixture.client({ responseBodyReadMs: 60 }).post(receiver.url(), {}, '{}');
      expect(attempt).toMatchObject({ delivered: code === 200, category: code === 200 ? null : 'status', code });
      expect(attempt.durationMs).toBeLessThan(within(10_000));
      await receiver.allClosed();
      expect(receiver.requests).toHaveLength(1);
    }
  });

  test('a body of broken chunks after the headers changes nothing', async () => {
    const receiver = await fixture.receiver((socket) =>
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnot a chunk\r\n'),
    );
    expect(await fixture.client().post(receiver.url(), {}, '{}')).toMatchObject({ delivered: true, code: 200 });
  });

  test('a body past the limit is cut at once, and one within it keeps the connection', async () => {
    let length = 1_000;
    const receiver = await fixture.receiver((socket) =>
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n\r\n${'x'.repeat(length)}`),
    );
    const client = fixture.client({ maxResponseBytes: 1_000, responseBodyReadMs: 60_000 });
    for (length of [1_000, 1_000, 1_001, 1_000]) {
      expect(await client.post(receiver.url(), {}, '{}')).toMatchObject({ delivered: true });
    }
    expect(receiver.requests.map(({ connection }) => connection)).toEqual([1, 1, 1, 2]);
  });

  test.each([
    ['is not HTTP', 'SSH-2.0-OpenSSH_9.6\r\n'],
    ['is empty', null],
    ['breaks off in the headers', 'HTTP/1.1 200 OK\r\ncontent-le'],
    ['has two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx'],
    ['switches protocols unasked', 'HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
    ['has too many headers', `HTTP/1.1 200 OK\r\n${`x: ${'y'.repeat(998)}\r\n`.repeat(17)}\r\n`],
    ['has too many 103 answers', 'HTTP/1.1 103 X\r\n\r\n'.repeat(17) + OK],
    ['has too many 100 answers', 'HTTP/1.1 100 X\r\n\r\n'.repeat(17) + OK],
  ])('an answer that %s is a failure of the connection, and is not repeated', async (_name, answer) => {
    const receiver = await fixture.receiver((socket) => (answer === null ? socket.end() : socket.end(answer)));
    const attempt = await fixture.client().post(receiver.url(), {}, '{}');
    expect(attempt).toMatchObject({ delivered: false, category: 'connection', code: null });
    expect(JSON.stringify(attempt)).not.toContain('secret');
    expect(receiver.requests).toHaveLength(1);
  });

  test.each(['100 Continue', '102 Processing', '103 Early Hints'])('%s before the answer is skipped', async (line) => {
    const receiver = await fixture.receiver((socket) =>
      socket.write(`HTTP/1.1 ${line}\r\nx: y\r\n\r\n`.repeat(16) + OK),
    );
    const client = fixture.client();
    for (let n = 0; n < 2; n++) {
      expect(await client.post(receiver.url(), {}, '{}')).toMatchObject({ delivered: true, code: 200 });
    }
    expect(receiver.requests.map(({ connection }) => connection)).toEqual([1, 1]);
  });

  test('100 Continue in single bytes is skipped too', async () => {
    const receiver = await fixture.receiver((socket) => {
      const bytes = Array.from(`HTTP/1.1 100 Continue\r\nx: y\r\n\r\n${OK}`);
      const next = (): void => {
        const byte = bytes.shift();
        if (byte !== undefined) socket.write(byte, () => setImmediate(next));
      };
      next();
    });
    expect(await fixture.client().post(receiver.url(), {}, '{}')).toMatchObject({ delivered: true, code: 200 });
  });

  test('no headers in time is a time-out, whatever else the receiver sends', async () => {
    for (const onRequest of [() => {}, (socket: Socket) => socket.write('HTTP/1.1 2')]) {
      const receiver = await fixture.receiver(onRequest);
      const attempt = await fixture.client({ responseHeadersTimeoutMs: 60 }).post(receiver.url(), {}, '{}');
      expect(attempt).toMatchObject({ delivered: false, category: 'timeout', code: null, detail: 'no answer' });
      expect(attempt.durationMs).toBeGreaterThanOrEqual(55);
      await receiver.allClosed();
    }
  });

  test('headers that trickle in for too long are a time-out', async () => {
    const receiver = await fixture.receiver((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nx: ');
      trickle(socket);
    });
    expect(await fixture.client({ responseHeadersTimeoutMs: 60 }).post(receiver.url(), {}, '{}')).toMatchObject({
      category: 'timeout',
    });
  });

  test('a URL or header that cannot be sent is an error of the caller', async () => {
    const client = fixture.client();
    await expect(client.post('/relative', {}, '{}')).rejects.toThrow('Invalid URL');
    await expect(client.post('http://127.0.0.1/', { 'a b': 'c' }, '{}')).rejects.toThrow('invalid header key');
  });
});
