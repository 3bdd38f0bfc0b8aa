import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { expectResponseHeaders, request, type WireRequest } from '../http/wire.ts';
import { recordingLog } from '../support/recording-log.ts';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';

const TEXT = 'a-private-text';
const TARGET_PATH = 'a-private-path';

let server: TestServer;
let group: TestGroup;
let secret: string;
let hook: number;
let target: string;
const receiver = createServer((req, res) => {
  req.resume();
  res.writeHead(500).end(TEXT);
});
const lines: string[] = [];
beforeAll(async () => {
  const limits = { hookRegistrationsPerGroupPerMinute: 1_000, unknownTokensPerSecondPerSource: 100_000 };
  server = await TestServer.start({ limits, log: { level: 'debug' } }, { log: recordingLog(lines) });
  group = await server.createGroup();
  // The receiver answers 500, so that deliveries fail and are logged.
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  target = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/${TARGET_PATH}?key=${TARGET_PATH}`;
  const { body } = await postJson(`${group.webhook}/reverse`, { url: target });
  ({ id: hook, secret } = body);
});
afterAll(async () => {
  await server.stop();
  receiver.closeAllConnections();
  await new Promise((resolve) => receiver.close(resolve));
});

/** Requests that each fail in another way, with a private text in every possible place. */
function failingRequests(): (WireRequest & { status: number })[] {
  const send = `/v1/webhooks/${group.token}`;
  const json = { 'content-type': 'application/json' };
  const wrong = group.token.slice(0, -3);
  return [
    { status: 400, path: send, headers: json, body: `{"text":"${TEXT}"` },
    { status: 400, path: send, headers: json, body: `["${TEXT}"]` },
    { status: 400, path: send, headers: json, body: `{"text":["${TEXT}"]}` },
    { status: 400, path: send, body: `${TEXT}\0` },
    { status: 400, path: send, headers: { 'idempotency-key': `${TEXT} x` }, body: 'x' },
    { status: 400, path: send, headers: { 'klatch-hops': TEXT }, body: 'x' },
    { status: 400, path: send, headers: { 'content-encoding': 'gzip' }, body: TEXT },
    { status: 400, path: send, headers: json, body: `{"text":7,"username":"${TEXT.repeat(10)}"}` },
    { status: 415, path: send, headers: { 'content-encoding': TEXT }, body: 'x' },
    { status: 415, path: send, headers: { 'content-type': `text/plain; charset=${TEXT}` }, body: 'x' },
    { status: 413, path: send, body: TEXT.repeat(10_000) },
    { status: 413, path: send, headers: { 'content-length': '99999999' } },
    { status: 508, path: send, headers: { 'klatch-hops': '3' }, body: TEXT },
    { status: 405, path: `${send}?${TEXT}`, method: 'GET' },
    { status: 404, path: `/v1/webhooks/${wrong}?${TEXT}`, body: TEXT },
    { status: 404, path: `/v1/webhooks/${wrong}/reverse`, method: 'GET' },
    { status: 410, path: `/v1/webhooks/${wrong}/status`, method: 'GET' },
    { status: 404, path: `/v1/webhooks/${group.token}%E0%A4%A`, body: TEXT },
    { status: 404, path: `/${TEXT}/${group.token}`, method: 'GET' },
    { status: 404, path: `${send}/${TEXT}`, method: 'GET' },
    { status: 410, path: `${send}/reverse/${TEXT}`, method: 'GET' },
    { status: 400, path: `${send}/reverse`, body: `{"url":"http://user:${TEXT}@example.com/"}` },
    { status: 400, path: `${send}/reverse`, body: `{"url":"http://10.0.0.1/${TEXT}"}` },
    { status: 400, path: `${send}/reverse`, body: `{"url":"http://example.com/","order":"${TEXT}"}` },
    { status: 400, path: `${send}/reverse`, body: `{"url":"http://example.com/","skip":["${TEXT}"]}` },
    { status: 400, path: `${send}/reverse`, body: `{"url": ${TEXT}` },
    { status: 400, path: `${send}/reverse/${hook}`, method: 'PATCH', body: `{"order":"${TEXT}"}` },
    { status: 400, path: `${send}/reverse/${hook}`, method: 'PATCH', body: `{"${TEXT}":1}` },
    { status: 410, path: `${send}/reverse/${TEXT}/ping` },
    { status: 405, path: `${send}/reverse/${hook}/ping?${TEXT}`, method: 'GET' },
    { status: 400, path: `${send}/reverse/${hook}/deliveries?before=${TEXT}`, method: 'GET' },
    { status: 400, path: `${send}/reverse/${hook}/deliveries?limit=${TEXT}`, method: 'GET' },
    { status: 400, path: `${send}/reverse/${hook}/redeliver`, body: `{"from":"${TEXT}"}` },
    { status: 400, path: `${send}/reverse/${hook}/redeliver`, body: `{"only":["${TEXT}"]}` },
    { status: 409, path: `${send}/reverse`, body: `{"url":"${target}"}` },
    { status: 431, path: `${send}?${TEXT.repeat(2_000)}`, method: 'GET' },
    { status: 400, path: `${send} ${TEXT}`, method: 'GET' },
  ];
}

function expectNothingPrivate(text: string): void {
  for (const part of [group.token, group.token.slice(0, 12), TEXT, TARGET_PATH, secret])
    expect(text).not.toContain(part);
}

describe('an error', () => {
  test('never shows the token, the path, the body or a header that it was sent with, and is JSON', async () => {
    for (const { status, ...asked } of failingRequests()) {
      const answer = await request(server.port, asked);
      expect([asked.path.length, asked.body?.length, answer.status]).toEqual([
        asked.path.length,
        asked.body?.length,
        status,
      ]);
      expectResponseHeaders(answer);
      expect(typeof answer.body.message).toBe('string');
      expectNothingPrivate([...answer.headers].flat().join('\n') + answer.text);
    }
  });

  test('inside the server is a 500 that tells nothing, and its cause is in the log', async () => {
    await server.database.query((sql) => sql`alter table reverse_hook rename column url to url_away`);
    try {
      const path = `/v1/webhooks/${group.token}/reverse`;
      for (const asked of [
        { method: 'GET', path },
        { path, body: `{"url":"http://example.com/${TARGET_PATH}"}` },
      ]) {
        const answer = await request(server.port, asked);
        expect([answer.status, answer.body]).toEqual([500, { message: 'The server failed; its log has the cause' }]);
        expectResponseHeaders(answer);
      }
    } finally {
      await server.database.query((sql) => sql`alter table reverse_hook rename column url_away to url`);
    }
    expect(lines.join('\n')).toContain('42703');
  });

  test('leaves nothing private in the log, nor does a success, at the lowest level', async () => {
    const posted = await postJson(group.webhook, { text: TEXT, username: TEXT }, { 'idempotency-key': TEXT });
    expect(posted.status).toBe(200);
    // The hook's state shows when the delivery has failed and is logged.
    for (;;) {
      const [hook] = (await (await fetch(`${group.webhook}/reverse`)).json()) as { state: string }[];
      if (hook?.state === 'failing') break;
      await new Promise(setImmediate);
    }
    for (const [method, rest] of [
      ['POST', '/ping'],
      ['GET', '/deliveries'],
      ['GET', ''],
    ] as const) {
      const answer = await request(server.port, { method, path: `/v1/webhooks/${group.token}/reverse/${hook}${rest}` });
      expect(answer.status).toBe(200);
      expectNothingPrivate([...answer.headers].flat().join('\n') + answer.text);
    }
    const rotated = await request(server.port, {
      method: 'PATCH',
      path: `/v1/webhooks/${group.token}/reverse/${hook}`,
      body: '{"rotate_secret":true}',
    });
    expect(lines.join('\n')).not.toContain(rotated.body.secret);
    expect(lines.length).toBeGreaterThan(0);
    expectNothingPrivate(lines.join('\n'));
  });
});
