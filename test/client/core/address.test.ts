import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { addressProblem, discoverServerAddress } from '../../../client/core/address.ts';

describe('the address of a server', () => {
  test.each([
    ['ws://127.0.0.1:9080', 'ws://127.0.0.1:9080/', 'frames', false, true],
    ['wss://chat.example.org', 'wss://chat.example.org/', 'frames', true, false],
    ['ws://[::1]:9080/v1/live', 'ws://[::1]:9080/v1/live', 'frames', false, true],
    ['tcp://127.0.0.1:9070', 'tcp://127.0.0.1:9070', 'lines', false, true],
    ['tls://chat.example.org:9443', 'tls://chat.example.org:9443', 'lines', true, false],
    ['ws://127.evil.example:80', 'ws://127.evil.example/', 'frames', false, false],
  ])('%s is connected to as it stands', async (text, url, transport, usesTls, isLoopback) => {
    expect(await discoverServerAddress(text)).toEqual({ url, transport, usesTls, isLoopback });
  });

  test.each([
    'chat.example.org',
    'tcp://chat.example.org',
    'tcp://chat.example.org:9070/path',
    'ftp://chat.example.org',
    'wss://alice:secret@chat.example.org',
    'ws://chat.example.org?token=1',
    'ws://chat.example.org#kll_1',
    '',
  ])('"%s" is refused in a sentence that does not repeat it', async (text) => {
    expect(addressProblem(text)).toMatch(/^give the server as/);
    await expect(discoverServerAddress(text)).rejects.toThrow(/^give the server as/);
  });
});

describe('a server that is named by its HTTP address', () => {
  let http: Server;
  let answer: { status: number; body: string };

  beforeEach(async () => {
    answer = { status: 200, body: '' };
    http = createServer((request, response) => {
      const isAbout = request.url === '/klatch/v1/about';
      response.writeHead(isAbout ? answer.status : 404, { location: 'http://127.0.0.1:1/' }).end(answer.body);
    }).listen(0, '127.0.0.1');
    await once(http, 'listening');
  });

  afterEach(() => void http.close());

  const base = (): string => `http://127.0.0.1:${(http.address() as AddressInfo).port}/klatch`;
  const announce = (...endpoints: string[]): void => void (answer.body = JSON.stringify({ endpoints }));

  test('is connected to where it announces, rather by ws than by lines', async () => {
    announce('gopher://x', 'tcp://chat.example:9070', 'wss://chat.example');
    expect((await discoverServerAddress(`${base()}/`)).url).toBe('wss://chat.example/');
    announce('tls://chat.example:9443');
    expect((await discoverServerAddress(base())).url).toBe('tls://chat.example:9443');
  });

  test('is connected to at its own /v1/live where it announces nothing', async () => {
    announce();
    expect((await discoverServerAddress(base())).url).toBe(`${base().replace('http', 'ws')}/v1/live`);
  });

  test.each([
    ['refuses', 404, '{}', /is not a Klatch server: it answers 404/],
    ['is something else', 200, '<html>', /is not a Klatch server/],
    ['does not say where', 200, '{"endpoints":[1]}', /is not a Klatch server/],
    ['says far too much', 200, `{"endpoints":["${'x'.repeat(300_000)}"]}`, /too long/],
    ['sends elsewhere', 302, '', /cannot be reached/],
  ])('is not one that %s', async (_, status, body, sentence) => {
    answer = { status, body };
    await expect(discoverServerAddress(base())).rejects.toThrow(sentence);
  });
});
