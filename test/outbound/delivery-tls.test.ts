import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Fixture, selfSigned } from './fixture.ts';
import { OK, Receiver } from './receiver.ts';

const fixture = new Fixture();
let tls: { key: string; cert: string };

describe('DeliveryClient and TLS', () => {
  beforeAll(() => {
    tls = selfSigned();
  });
  afterEach(() => fixture.close());

  test('refuses a self-signed certificate and sends nothing', async () => {
    const receiver = await fixture.receiver((socket) => socket.write(OK), tls);
    const attempt = await fixture.client().post(receiver.url('hooks.test'), {}, '{}');
    expect(attempt).toMatchObject({ delivered: false, category: 'tls', code: null });
    expect(attempt.detail).toBe('DEPTH_ZERO_SELF_SIGNED_CERT 127.0.0.1');
    expect(receiver.requests).toHaveLength(0);
  });

  test.each(['hooks.test', 'hooks.test.', 'HOOKS.test', '127.0.0.1'])(
    'accepts a certificate for %s of an authority it is told to trust, and keeps the connection',
    async (host) => {
      const receiver = await fixture.receiver((socket) => socket.write(OK), tls);
      const client = fixture.client({ ca: tls.cert });
      for (let n = 0; n < 2; n++) {
        expect(await client.post(receiver.url(host), {}, '{}')).toMatchObject({ delivered: true, code: 200 });
      }
      expect(receiver.requests.map(({ connection, nth }) => [connection, nth])).toEqual([
        [1, 1],
        [1, 2],
      ]);
    },
  );

  test('refuses a trusted certificate of another name', async () => {
    const receiver = await fixture.receiver((socket) => socket.write(OK), tls);
    const attempt = await fixture.client({ ca: tls.cert }).post(receiver.url('other.test'), {}, '{}');
    expect(attempt).toMatchObject({ category: 'tls', detail: 'ERR_TLS_CERT_ALTNAME_INVALID 127.0.0.1' });
    expect(receiver.requests).toHaveLength(0);
  });

  test('a refused certificate is not asked for again at the next address', async () => {
    const receiver = await fixture.receiver((socket) => socket.write(OK), tls);
    const address = { address: '127.0.0.1', family: 4 };
    const client = fixture.client({ resolve: () => Promise.resolve([address, address]) });
    let shaken = 0;
    receiver.onRawConnection(() => (shaken += 1));
    expect(await client.post(receiver.url('hooks.test'), {}, '{}')).toMatchObject({ category: 'tls' });
    expect(shaken).toBe(1);
  });

  test('a trusted certificate does not open a refused address', async () => {
    const receiver = await fixture.receiver((socket) => socket.write(OK), tls);
    const client = fixture.client({ ca: tls.cert, allow: [] });
    expect(await client.post(receiver.url('hooks.test'), {}, '{}')).toMatchObject({ category: 'address policy' });
    expect(receiver.connections).toBe(0);
  });

  test('a receiver that speaks plain HTTP on https is a failure of TLS', async () => {
    const receiver = await fixture.receiver((socket) => socket.write(OK));
    // The receiver answers the connection itself: a ClientHello has no blank line, so it is never a complete request.
    receiver.onConnection = (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    const url = receiver.url('hooks.test').replace('http:', 'https:');
    expect(await fixture.client().post(url, {}, '{}')).toMatchObject({ category: 'tls', code: null });
  });

  test('a receiver that never shakes hands is a time-out of connecting', async () => {
    const receiver = await fixture.receiver(() => {});
    const url = receiver.url('hooks.test').replace('http:', 'https:');
    const attempt = await fixture.client({ connectTimeoutMs: 60 }).post(url, {}, '{}');
    expect(attempt).toMatchObject({ category: 'timeout', detail: 'connect to 127.0.0.1' });
    await receiver.allClosed();
  });

  test('of several addresses the silent one leaves time for the next', async () => {
    const port = await fixture.receiver((socket) => socket.write(OK), tls);
    const silent = await Receiver.start(() => {}, undefined, { host: '127.0.0.2', port: port.port });
    const addresses = ['127.0.0.2', '127.0.0.1'].map((address) => ({ address, family: 4 }));
    const client = fixture.client({
      ca: tls.cert,
      connectTimeoutMs: 6_000,
      responseHeadersTimeoutMs: 20_000,
      resolve: () => Promise.resolve(addresses),
    });
    expect(await client.post(port.url('hooks.test'), {}, '{}')).toMatchObject({ delivered: true });
    expect(silent.connections).toBe(1);
    await silent.stop();
  });

  test('a receiver that closes in the handshake is a failure of the connection', async () => {
    const receiver = await fixture.receiver(() => {});
    receiver.onConnection = (socket) => socket.destroy();
    const url = receiver.url('hooks.test').replace('http:', 'https:');
    expect(await fixture.client().post(url, {}, '{}')).toMatchObject({ category: 'connection', code: null });
    expect(receiver.connections).toBe(1);
  });

  test.each([
    ['destroys', true],
    ['closes', false],
  ])('a receiver that %s a reused connection gets the request once more', async (_name, destroys) => {
    const receiver = await fixture.receiver((socket, { nth }) => {
      if (nth === 1) socket.write(OK);
      else if (destroys) socket.destroy();
      else socket.end();
    }, tls);
    const client = fixture.client({ ca: tls.cert });
    for (let n = 0; n < 2; n++) {
      expect(await client.post(receiver.url('hooks.test'), {}, '{}')).toMatchObject({ delivered: true });
    }
    expect(receiver.requests.map(({ connection, nth }) => [connection, nth])).toEqual([
      [1, 1],
      [1, 2],
      [2, 1],
    ]);
  });
});
