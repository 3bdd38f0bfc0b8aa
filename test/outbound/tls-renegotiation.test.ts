import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import { afterEach, expect, test } from '@jest/globals';
import { Fixture, selfSigned } from './fixture.ts';
import { OK } from './receiver.ts';

const fixture = new Fixture();
afterEach(() => fixture.close());

test('a receiver that asks for another handshake gets none, and costs no more than its attempt', async () => {
  const tls = selfSigned();
  let shaken = 0;
  let refused = 0;
  const server = createServer({ ...tls, maxVersion: 'TLSv1.2' }, (socket) => {
    socket.on('error', () => {
      refused += 1;
    });
    socket.once('data', () => {
      socket.renegotiate({ rejectUnauthorized: false }, (error) => {
        if (error === null) shaken += 1;
        else refused += 1;
        if (!socket.destroyed) socket.end(OK);
      });
    });
  }).listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const client = fixture.client({ ca: tls.cert, responseHeadersTimeoutMs: 1_000 });
    const attempt = await client.post(`https://127.0.0.1:${port}/`, {}, '{}');
    expect(attempt).toMatchObject({
      delivered: false,
      category: expect.stringMatching(/^(?:timeout|connection|tls)$/),
    });
    expect([shaken, refused]).toEqual([0, 1]);
  } finally {
    server.close();
  }
});
