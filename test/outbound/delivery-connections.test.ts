import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { within } from '../run/machine-speed.ts';
import { Fixture } from './fixture.ts';
import { OK, type ReceivedRequest } from './receiver.ts';

const fixture = new Fixture();
afterEach(() => fixture.close());

/** Answers the first request of each connection, and calls `then` for the second. */
function onceThen(then: (socket: Socket) => void) {
  return (socket: Socket, { nth }: ReceivedRequest): void => {
    if (nth === 1) socket.write(OK);
    else then(socket);
  };
}

function ways(requests: readonly ReceivedRequest[]): [number, number][] {
  return requests.map(({ connection, nth }) => [connection, nth]);
}

describe('DeliveryClient and reused connections', () => {
  test.each([
    ['resets', (socket: Socket) => socket.resetAndDestroy()],
    ['closes', (socket: Socket) => socket.end()],
    ['destroys', (socket: Socket) => socket.destroy()],
  ])('a receiver that %s a reused connection without an answer gets the request once more', async (_name, then) => {
    const receiver = await fixture.receiver(onceThen(then));
    const client = fixture.client();
    const bodies = ['1', '2', '3'];
    for (const body of bodies) expect(await client.post(receiver.url(), {}, body)).toMatchObject({ delivered: true });
    expect(ways(receiver.requests)).toEqual([
      [1, 1],
      [1, 2],
      [2, 1],
      [2, 2],
      [3, 1],
    ]);
    expect(receiver.requests.map(({ body }) => body)).toEqual(['1', '2', '2', '3', '3']);
  });

  test('a connection that was closed while idle costs no failure, and exactly one more connection', async () => {
    const receiver = await fixture.receiver((socket) => socket.write(OK));
    const client = fixture.client();
    expect(await client.post(receiver.url(), {}, '1')).toMatchObject({ delivered: true });
    for (const socket of receiver.sockets) socket.resetAndDestroy();
    expect(await client.post(receiver.url(), {}, '2')).toMatchObject({ delivered: true });
    expect(ways(receiver.requests)).toEqual([
      [1, 1],
      [2, 1],
    ]);
  });

  test('many posts over connections that each serve one request are all delivered', async () => {
    const receiver = await fixture.receiver(onceThen((socket) => socket.resetAndDestroy()));
    const client = fixture.client({ maxInFlightPerHost: 4 });
    const attempts = await Promise.all(Array.from({ length: 40 }, (_, n) => client.post(receiver.url(), {}, `${n}`)));
    expect(attempts.filter(({ delivered }) => delivered)).toHaveLength(40);
  });

  test('a repetition that fails counts, and is not repeated', async () => {
    const receiver = await fixture.receiver((socket, { connection }) => {
      if (connection === 1) onceThen(() => socket.end())(socket, receiver.requests.at(-1) as ReceivedRequest);
      else socket.resetAndDestroy();
    });
    const client = fixture.client();
    expect(await client.post(receiver.url(), {}, '1')).toMatchObject({ delivered: true });
    expect(await client.post(receiver.url(), {}, '2')).toMatchObject({ delivered: false, category: 'connection' });
    expect(ways(receiver.requests)).toEqual([
      [1, 1],
      [1, 2],
      [2, 1],
    ]);
  });

  test('a reset of a new connection is a failure, and the receiver saw one request', async () => {
    const receiver = await fixture.receiver((socket) => socket.resetAndDestroy());
    const attempt = await fixture.client().post(receiver.url(), {}, '{}');
    expect(attempt).toMatchObject({ delivered: false, category: 'connection', code: null, detail: 'ECONNRESET' });
    expect(ways(receiver.requests)).toEqual([[1, 1]]);
  });

  test.each(['H', 'HTTP/1.1 100 Con', 'HTTP/1.1 102 X\r\n\r\n'])(
    'a reused connection that broke off after "%s" is a failure',
    async (start) => {
      const receiver = await fixture.receiver(onceThen((socket) => socket.end(start)));
      const client = fixture.client();
      await client.post(receiver.url(), {}, '1');
      expect(await client.post(receiver.url(), {}, '2')).toMatchObject({ delivered: false, category: 'connection' });
      expect(ways(receiver.requests)).toEqual([
        [1, 1],
        [1, 2],
      ]);
    },
  );

  test('a time-out on a reused connection is a failure', async () => {
    const receiver = await fixture.receiver(onceThen(() => {}));
    const client = fixture.client({ responseHeadersTimeoutMs: 4_000 });
    expect(await client.post(receiver.url(), {}, '1')).toMatchObject({ delivered: true });
    expect(await client.post(receiver.url(), {}, '2')).toMatchObject({ delivered: false, category: 'timeout' });
    expect(receiver.requests).toHaveLength(2);
  });

  test('the repetition shares the clock of the attempt', async () => {
    const receiver = await fixture.receiver((socket, { connection, nth }) => {
      if (connection === 1) onceThen(() => socket.end())(socket, { connection, nth, head: '', body: '' });
    });
    const client = fixture.client({ responseHeadersTimeoutMs: 4_000 });
    expect(await client.post(receiver.url(), {}, '1')).toMatchObject({ delivered: true });
    const attempt = await client.post(receiver.url(), {}, '2');
    expect(attempt).toMatchObject({ delivered: false, category: 'timeout' });
    expect(attempt.durationMs).toBeLessThan(within(7_900));
  });
});

describe('beforeWrite', () => {
  test('is asked once for each write, the repetition included', async () => {
    const receiver = await fixture.receiver(onceThen((socket) => socket.end()));
    const client = fixture.client();
    let asked = 0;
    const beforeWrite = (): boolean => {
      asked += 1;
      return true;
    };
    await client.post(receiver.url(), {}, '1', beforeWrite);
    expect(asked).toBe(1);
    await client.post(receiver.url(), {}, '2', beforeWrite);
    expect(asked).toBe(3);
  });

  test('is not asked before the connection is free', async () => {
    const { promise: received, resolve: onReceived } = Promise.withResolvers<Socket>();
    const receiver = await fixture.receiver((socket, { nth }) => (nth === 1 ? onReceived(socket) : socket.write(OK)));
    const client = fixture.client();
    let asked = false;
    const first = client.post(receiver.url(), {}, '1');
    const second = client.post(receiver.url(), {}, '2', () => (asked = true));
    const socket = await received;
    expect(asked).toBe(false);
    socket.write(OK);
    await Promise.all([first, second]);
    expect(asked).toBe(true);
  });

  test('false sends nothing and is no failure', async () => {
    const receiver = await fixture.receiver((socket) => socket.write(OK));
    const client = fixture.client();
    const refused = await client.post(receiver.url(), {}, '1', () => false);
    expect(refused).toMatchObject({ delivered: false, category: null, code: null });
    expect(await client.post(receiver.url(), {}, '2')).toMatchObject({ delivered: true });
    expect(receiver.requests.map(({ body }) => body)).toEqual(['2']);
  });

  test('false at the repetition ends the attempt without a verdict', async () => {
    const receiver = await fixture.receiver(onceThen((socket) => socket.end()));
    const client = fixture.client();
    await client.post(receiver.url(), {}, '1');
    const answers = [true, false];
    expect(await client.post(receiver.url(), {}, '2', () => answers.shift() ?? false)).toMatchObject({
      delivered: false,
      category: null,
    });
    expect(receiver.requests).toHaveLength(2);
  });

  test('what it throws reaches the caller, and nothing is sent', async () => {
    const receiver = await fixture.receiver((socket) => socket.write(OK));
    const client = fixture.client();
    const thrown = client.post(receiver.url(), {}, '1', () => {
      throw new Error('lease is gone');
    });
    await expect(thrown).rejects.toThrow('lease is gone');
    expect(await client.post(receiver.url(), {}, '2')).toMatchObject({ delivered: true });
    expect(receiver.requests.map(({ body }) => body)).toEqual(['2']);
  });
});

describe('bounds of DeliveryClient', () => {
  test('a host never gets more connections than its share', async () => {
    const receiver = await fixture.receiver((socket) => setImmediate(() => socket.write(OK)));
    const client = fixture.client({ maxInFlightPerHost: 4 });
    const attempts = await Promise.all(Array.from({ length: 32 }, (_, n) => client.post(receiver.url(), {}, `${n}`)));
    expect(attempts.every(({ delivered }) => delivered)).toBe(true);
    expect(receiver.requests).toHaveLength(32);
    expect(receiver.connections).toBeLessThanOrEqual(4);
    expect(receiver.mostSockets).toBe(4);
  });

  test('posts that queue for a host that refuses or must not be reached all end with the reason', async () => {
    const receiver = await fixture.receiver(() => {});
    const url = receiver.url('hooks.test');
    const reasons = [
      ['127.0.0.2', 'refused'],
      ['10.0.0.1', 'address policy'],
    ] as const;
    for (const [address, category] of reasons) {
      const client = fixture.client({
        maxInFlightPerHost: 2,
        resolve: () => Promise.resolve([{ address, family: 4 }]),
      });
      const attempts = await Promise.all(Array.from({ length: 20 }, () => client.post(url, {}, '{}')));
      expect(attempts.map((attempt) => attempt.category)).toEqual(Array(20).fill(category));
    }
  });

  test('a post that finds no free connection in time is not sent, and is no failure', async () => {
    const { promise: received, resolve: onReceived } = Promise.withResolvers<Socket>();
    const receiver = await fixture.receiver((socket, { nth }) => {
      if (nth === 1) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no', () => onReceived(socket));
      else socket.write(OK);
    });
    const client = fixture.client({ responseHeadersTimeoutMs: 4_000, responseBodyReadMs: 60_000 });
    const first = client.post(receiver.url(), {}, '1');
    const socket = await received;
    const second = await client.post(receiver.url(), {}, '2');
    expect(second).toMatchObject({ delivered: false, category: null, detail: 'no free connection', durationMs: 0 });
    socket.write('k');
    expect(await first).toMatchObject({ delivered: true });
    const third = client.post(receiver.url(), {}, '3');
    expect(await third).toMatchObject({ delivered: true });
    expect(receiver.requests.map(({ body }) => body)).toEqual(['1', '3']);
  });

  test('idle connections are bounded over all hosts, the longest idle is closed first', async () => {
    const receivers = [];
    for (let n = 0; n < 3; n++) receivers.push(await fixture.receiver((socket) => socket.write(OK)));
    const client = fixture.client({ maxIdleConnections: 2 });
    for (const receiver of receivers) await client.post(receiver.url(), {}, '{}');
    await receivers[0]?.allClosed();
    for (const receiver of receivers.toReversed()) await client.post(receiver.url(), {}, '{}');
    expect(receivers.map(({ connections }) => connections)).toEqual([2, 1, 1]);
  });

  test('a connection in use is not taken for an idle one', async () => {
    const { promise: received, resolve: onReceived } = Promise.withResolvers<Socket>();
    const busy = await fixture.receiver(onceThen((socket) => onReceived(socket)));
    const others = [await fixture.receiver((s) => s.write(OK)), await fixture.receiver((s) => s.write(OK))];
    const client = fixture.client({ maxIdleConnections: 1 });
    await client.post(busy.url(), {}, '1');
    const post = client.post(busy.url(), {}, '2');
    const socket = await received;
    for (const other of others) await client.post(other.url(), {}, '{}');
    await others[0]?.allClosed();
    socket.write(OK);
    expect(await post).toMatchObject({ delivered: true });
    expect(ways(busy.requests)).toEqual([
      [1, 1],
      [1, 2],
    ]);
  });

  test('an old connection is not kept', async () => {
    const receiver = await fixture.receiver((socket) => socket.write(OK));
    const client = fixture.client({ connectionLifetimeMs: 0 });
    for (let n = 0; n < 3; n++) {
      expect(await client.post(receiver.url(), {}, '{}')).toMatchObject({ delivered: true });
    }
    expect(ways(receiver.requests)).toEqual([
      [1, 1],
      [2, 1],
      [3, 1],
    ]);
  });

  test('an idle connection is closed after its time', async () => {
    const receiver = await fixture.receiver((socket) => socket.write(OK));
    await fixture.client({ keepAliveMs: 20 }).post(receiver.url(), {}, '{}');
    await receiver.allClosed();
    expect(receiver.sockets.size).toBe(0);
  });
});

describe('stop', () => {
  test('ends what is in flight, queued or connecting without a verdict, and closes the connections', async () => {
    const { promise: received, resolve: onReceived } = Promise.withResolvers<void>();
    const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>();
    const receiver = await fixture.receiver(() => onReceived());
    const client = fixture.client({
      resolve: () => {
        onAsked();
        return new Promise(() => {});
      },
      responseHeadersTimeoutMs: 60_000,
    });
    const posts = [
      client.post(receiver.url(), {}, 'in flight'),
      client.post(receiver.url(), {}, 'queued'),
      client.post('http://connecting.example/', {}, 'connecting'),
    ];
    await Promise.all([received, asked]);
    await client.stop();
    for (const post of posts) {
      expect(await post).toMatchObject({ delivered: false, category: null, code: null, detail: 'stopped' });
    }
    await receiver.allClosed();
    expect(receiver.requests.map(({ body }) => body)).toEqual(['in flight']);
  });

  test('counts what was already answered with 2xx as delivered', async () => {
    const receiver = await fixture.receiver((socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no'));
    const client = fixture.client({ responseBodyReadMs: 60_000 });
    const { promise: answered, resolve: onAnswered } = Promise.withResolvers<void>();
    subscribe('undici:request:headers', () => onAnswered());
    const post = client.post(receiver.url(), {}, '{}');
    await answered;
    await client.stop();
    expect(await post).toMatchObject({ delivered: true, code: 200 });
    await receiver.allClosed();
  });

  test('is idempotent, and refuses later posts without a verdict', async () => {
    const receiver = await fixture.receiver((socket) => socket.write(OK));
    const client = fixture.client();
    await client.post(receiver.url(), {}, '{}');
    await Promise.all([client.stop(), client.stop()]);
    expect(await client.post(receiver.url(), {}, '{}')).toMatchObject({ delivered: false, category: null });
    expect(receiver.requests).toHaveLength(1);
  });
});
