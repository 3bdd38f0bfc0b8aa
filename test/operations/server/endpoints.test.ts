import { expect, test } from '@jest/globals';
import type { Config } from '../../../src/config/config.ts';
import { announcedEndpoints } from '../../../src/operations/server/endpoints.ts';
import { testConfig } from '../../support/config.ts';
import { testServer } from '../../support/database.ts';

function announced(baseUri: string, listeners: readonly string[], publicEndpoints: readonly string[] = []): unknown {
  const base = testConfig(testServer('none'), '/nowhere');
  const config: Config = { ...base, publicEndpoints, http: { ...base.http, baseUri } };
  return announcedEndpoints({ config, listeners });
}

test('what the administrator announces is announced, and nothing else', () => {
  const told = ['wss://live.example:443', 'tls://live.example:9070'];
  expect(announced('https://chat.example', ['ws://0.0.0.0:9080'], told)).toEqual(told);
});

test.each<[string, string[], string[]]>([
  ['https://chat.example', ['http://127.0.0.1:8080'], ['wss://chat.example/v1/live']],
  ['http://chat.example:8080', [], ['ws://chat.example:8080/v1/live']],
  ['https://chat.example/klatch', [], ['wss://chat.example/klatch/v1/live']],
  // These two endpoints are left out: other machines cannot reach their addresses.
  ['https://chat.example', ['ws://127.0.0.1:9080', 'tcp://[::1]:9070'], ['wss://chat.example/v1/live']],
  [
    'https://chat.example',
    ['wss://0.0.0.0:9080', 'tls://[::]:9070'],
    ['wss://chat.example/v1/live', 'wss://chat.example:9080', 'tls://chat.example:9070'],
  ],
  ['https://chat.example', ['tcp://192.0.2.7:9070'], ['wss://chat.example/v1/live', 'tcp://192.0.2.7:9070']],
  // The URL keeps the default port of its scheme, so that a reader need not know that port.
  ['https://chat.example', ['wss://0.0.0.0:443'], ['wss://chat.example/v1/live', 'wss://chat.example:443']],
  [
    'http://127.0.0.1:8080',
    ['http://127.0.0.1:8080', 'ws://127.0.0.1:9080', 'tcp://127.0.0.1:9070'],
    ['ws://127.0.0.1:8080/v1/live', 'ws://127.0.0.1:9080', 'tcp://127.0.0.1:9070'],
  ],
  ['http://localhost:8080', ['tcp://0.0.0.0:9070'], ['ws://localhost:8080/v1/live', 'tcp://localhost:9070']],
])('without that, clients of %s are told where they can come to: %j', (baseUri, listeners, told) => {
  expect(announced(baseUri, listeners)).toEqual(told);
});
