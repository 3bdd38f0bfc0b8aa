import { describe, expect, test } from '@jest/globals';
import { load, refusal } from './load.ts';
import { MINIMAL } from './folder.ts';

describe('endpoints', () => {
  test('without a certificate listen on this machine alone, with one on every address', () => {
    const { config } = load(
      `${MINIMAL}endpoints = [{ type = tcp, port = 0 }, { type = websocket, port = 1, interface = "::" }]\n`,
    );
    expect(config.endpoints).toEqual([
      { type: 'tcp', interface: '127.0.0.1', port: 0, tls: null },
      { type: 'websocket', interface: '::', port: 1, tls: null },
    ]);
  });

  test.each([
    ['[{ type = tcp, port = 9090 }]', 'endpoints[0].port: is 9090 like http.port'],
    ['[{ type = tcp, port = 1 }, { type = websocket, port = 1 }]', 'endpoints[1].port: is 1 like endpoints[0].port'],
    ['[{ type = tcp, port = 19090, interface = "0.0.0.0" }]', 'endpoints[0].port: is 19090 like metrics.port'],
  ])('that take a port of the server itself are refused: %s', (list, sentence) => {
    expect(refusal(`endpoints = ${list}`)).toContain(
      `${sentence}, on the same interface: Klatch cannot listen there twice`,
    );
  });

  test('whose files cannot be used are refused at the line that names them', () => {
    const list = '[{ type = tcp, port = 1, certificate = "none.crt", key = "none.key" }]';
    expect(refusal(`endpoints = ${list}`)).toBe(
      'server.conf:3: endpoints[0].certificate: the tcp endpoint of port 1 cannot use none.crt: there is no such file',
    );
  });
});
