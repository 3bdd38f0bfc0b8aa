import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { PhoneCodeGateway } from '../../src/activation/phone-code-gateway.ts';
import { TestGate, send } from '../support/gate.ts';
import { within } from '../run/machine-speed.ts';

const CODE = { address: '+441632960001', code: '123456', validMs: 60_000 };

let server: TestGate;
let gate: PhoneCodeGateway;
beforeEach(async () => {
  server = await TestGate.start();
  gate = new PhoneCodeGateway(server.config, { userAgent: 'Klatch/test', timeoutMs: 20_000 });
});
afterEach(async () => {
  await gate.stop();
  await server.stop();
});

describe('the activation gate', () => {
  test('is told number and code, and judges the code by the hash that it gave', async () => {
    const hash = await gate.send(CODE);
    expect(server.requests[0]).toEqual({
      method: 'POST',
      url: '/gate/v1/codes/send',
      token: 'gate-token',
      body: { phone: 441632960001, code: '123456' },
    });
    expect(await gate.verifyCode(hash, '123456')).toBe(true);
    expect(await gate.verifyCode(hash, '654321')).toBe(false);
    expect(await gate.verifyCode('of nothing', '123456')).toBe(false);
    expect(server.requests[1]).toMatchObject({
      method: 'GET',
      url: `/gate/v1/codes/validate/${encodeURIComponent(hash)}?code=123456`,
      token: 'gate-token',
    });
  });

  test('is asked about a code that does not exist in the same way, and that one is never right', async () => {
    server.handle = (_request, res) => send(res, 200, { $type: 'Validated' });
    expect(await gate.verifyCode(null, '123456')).toBe(false);
    expect(server.requests[0]).toMatchObject({
      method: 'GET',
      url: expect.stringMatching(/\/gate\/v1\/codes\/validate\/[0-9a-f]{32}\?code=123456$/),
    });
  });

  test.each([429, 500, 501, 502, 504])(
    'that answers %d in no words of its own is away, for a code that was sent and for one that was not',
    async (status) => {
      server.handle = (_request, res) => void res.writeHead(status, { 'content-type': 'text/html' }).end('<html>');
      const away = { failure: 'refused', detail: `status ${status}` };
      await expect(gate.verifyCode('hash', '123456')).rejects.toMatchObject(away);
      await expect(gate.verifyCode(null, '123456')).rejects.toMatchObject(away);
      await expect(gate.probe()).rejects.toMatchObject(away);
    },
  );

  test('says why it does not send, and of its words only the type is kept', async () => {
    for (const [type, failure] of [
      ['BadRequest', 'address'],
      ['SendFailure', 'refused'],
    ] as const) {
      server.handle = (_request, res) => send(res, 400, { $type: type, message: 'no code for +441632960001' });
      const error = await gate.send(CODE).catch((each: unknown) => each);
      expect(error).toMatchObject({ failure, detail: `status 400, ${type}` });
      expect(JSON.stringify(error) + String(error)).not.toContain('441632960001');
    }
  });

  test.each([
    ['no JSON', 200, 'text/html', '<html>'],
    ['no type', 200, 'application/json', '{"hash":"x"}'],
    ['a list', 200, 'application/json', '[]'],
    ['no hash', 200, 'application/json', '{"$type":"CodeHash"}'],
    ['an empty hash', 200, 'application/json', '{"$type":"CodeHash","hash":""}'],
    ['a hash that climbs', 200, 'application/json', '{"$type":"CodeHash","hash":".."}'],
    ['a hash with a line break', 200, 'application/json', '{"$type":"CodeHash","hash":"a\\nb"}'],
    ['an endless hash', 200, 'application/json', JSON.stringify({ $type: 'CodeHash', hash: 'x'.repeat(513) })],
    ['far too much', 200, 'application/json', JSON.stringify({ $type: 'CodeHash', hash: 'x'.repeat(100_000) })],
  ])('is not believed when it answers with %s', async (_what, status, type, body) => {
    server.handle = (_request, res) => void res.writeHead(status, { 'content-type': type }).end(body);
    await expect(gate.send(CODE)).rejects.toMatchObject({ name: 'ProviderError', failure: 'answer' });
  });

  test('with a token that it refuses is away', async () => {
    const wrong = new PhoneCodeGateway({ ...server.config, authToken: 'another' }, { userAgent: 'Klatch/test' });
    await expect(wrong.probe()).rejects.toMatchObject({ failure: 'login', detail: 'status 403' });
    await expect(wrong.send(CODE)).rejects.toMatchObject({ failure: 'login' });
    await wrong.stop();
    await gate.probe();
  });

  test('leads the token nowhere else: a redirect is a failure', async () => {
    const other = await TestGate.start();
    try {
      for (const status of [301, 302, 303, 307, 308]) {
        server.handle = ({ url }, res) => {
          res.writeHead(status, { location: other.config.uri.replace('/gate', '') + url }).end();
        };
        await expect(gate.send(CODE)).rejects.toMatchObject({
          failure: 'answer',
          detail: `status ${status}, a redirect`,
        });
        await expect(gate.verifyCode('hash', '123456')).rejects.toMatchObject({ failure: 'answer' });
        await expect(gate.probe()).rejects.toMatchObject({ failure: 'answer' });
      }
      expect(other.requests).toEqual([]);
    } finally {
      await other.stop();
    }
  });

  test('that hangs, or answers a byte at a time, is given up in time', async () => {
    await gate.stop();
    gate = new PhoneCodeGateway(server.config, { userAgent: 'Klatch/test', timeoutMs: 500 });
    server.handle = () => {};
    const startedAt = performance.now();
    await expect(gate.send(CODE)).rejects.toMatchObject({ failure: 'timeout' });
    server.handle = (_request, res) => {
      res.writeHead(200, { 'content-type': 'application/json' });
      const drip = setInterval(() => res.write(' '), 50);
      res.once('close', () => clearInterval(drip));
    };
    await expect(gate.send(CODE)).rejects.toMatchObject({ failure: 'timeout' });
    expect(performance.now() - startedAt).toBeLessThan(within(15_000));
  });

  test('that closes, or is not there, is away', async () => {
    const sockets = new Set<Socket>();
    const closing = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.once('data', () => socket.destroy());
    }).listen(0, '127.0.0.1');
    await once(closing, 'listening');
    const { port } = closing.address() as AddressInfo;
    const there = new PhoneCodeGateway(
      { uri: `http://127.0.0.1:${port}`, authToken: 'x' },
      { userAgent: 'Klatch/test' },
    );
    await expect(there.probe()).rejects.toMatchObject({ failure: 'connection' });
    closing.close();
    await once(closing, 'close');
    await expect(there.probe()).rejects.toMatchObject({ failure: 'connection' });
    await there.stop();
  });

  test('is let go of when the server stops', async () => {
    server.handle = () => {};
    const asked = gate.send(CODE);
    asked.catch(() => {});
    await gate.stop();
    await expect(asked).rejects.toMatchObject({ name: 'ProviderError' });
  });
});
