import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { TestServer, type TestGroup } from '../support/server.ts';
import { request, storedMessages, type WireResponse } from './wire.ts';

/** The parse budget of a source, in ms a second: the first step of parsing any form takes longer. */
const PARSE_MS = 0.01;
const FORM = { 'content-type': 'multipart/form-data; boundary=B' };
const TOO_MUCH = 'Requests from your network take too much of the time of the server';

let server: TestServer;
let group: TestGroup;
beforeAll(async () => {
  server = await TestServer.start({
    http: { trustedProxies: ['127.0.0.1'] },
    limits: { sourceParseMsPerSecond: PARSE_MS, tokenQueueTimeoutMs: 0 },
  });
  group = await server.createGroup();
});
afterAll(() => server.stop());

let sources = 0;
function post(body: string | Buffer, headers: Record<string, string>): Promise<WireResponse> {
  const source = { 'x-forwarded-for': `10.0.0.${(sources += 1)}` };
  return request(server.port, { path: `/v1/webhooks/${group.token}`, body, headers: { ...source, ...headers } });
}

const field = (name: string, value: string): string =>
  `--B\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const payload = field('payload', JSON.stringify({ text: 'deploy', rest: 'x'.repeat(200_000) }));

test('the payload of a form is parsed in a step that is counted, after that which finds the fields', async () => {
  expect((await post('{"text":"a body of one step"}', { 'content-type': 'application/json' })).status).toBe(200);
  const form = gzipSync(`${payload}--B--\r\n`, { level: 0 });
  const response = await post(form, { ...FORM, 'content-encoding': 'gzip' });
  expect([response.status, response.body.message]).toEqual([503, expect.stringContaining(TOO_MUCH)]);
});

test('the payload of a form with files is parsed in a step that is counted; its files are given up', async () => {
  const file = '--B\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\ncontent\r\n';
  const response = await post(`${payload}${file}--B--\r\n`, FORM);
  expect([response.status, response.body.message]).toEqual([503, expect.stringContaining(TOO_MUCH)]);
  expect((await storedMessages(server, group)).map(({ text }) => text)).toEqual(['a body of one step']);
  expect(await server.database.query((sql) => sql`select from file`)).toHaveLength(0);
});
