import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { describeError, type Log } from '../../src/log.ts';
import { eventually } from '../support/eventually.ts';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';
import { ask, registerHook, type TestHook } from './hook-fixture.ts';

const PRIVATE = 'a-private-path';
const TEXT = 'a-private-text';
const FAILURES = 40;

/** Ways in which a receiver can return received text in places that a careless sender would log. */
const REFLECTIONS: readonly ((seen: string) => string)[] = [
  (seen) => `HTTP/1.1 500 ${seen}\r\ncontent-length: 0\r\n\r\n`,
  (seen) => `HTTP/1.1 302 X\r\nlocation: http://127.0.0.1/${seen}\r\ncontent-length: 0\r\n\r\n`,
  (seen) => `HTTP/1.1 503 X\r\nretry-after: ${seen}\r\nx-${PRIVATE}: ${seen}\r\ncontent-length: 0\r\n\r\n`,
  (seen) => `HTTP/1.1 500 X\r\ncontent-length: ${seen}\r\n\r\n`,
  (seen) => `HTTP/1.1 ${seen}\r\n\r\n`,
  (seen) => `${seen}\r\n\r\n`,
  (seen) => `HTTP/1.1 500 X\r\ntransfer-encoding: chunked\r\n\r\n${seen}\r\n`,
  (seen) => `HTTP/1.1 500 X\r\ncontent-length: ${seen.length}\r\n\r\n${seen}`,
  () => '',
];

const lines: { level: string; text: string }[] = [];

/** A log that records every line in the form of the real log. */
function recordingLog(): Log {
  const at =
    (level: string) =>
    (event: string, fields: Record<string, unknown> = {}) => {
      const { error, ...rest } = fields;
      const text = JSON.stringify({ event, ...rest, ...(error === undefined ? {} : { error: describeError(error) }) });
      lines.push({ level, text });
    };
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: () => log };
  return log;
}

let server: TestServer;
let group: TestGroup;
let receiver: Server;
let requests = 0;
const sockets = new Set<Socket>();
const hooks: TestHook[] = [];

beforeAll(async () => {
  const delivery = { retryDelaysMs: [5] };
  const limits = { hookRegistrationsPerGroupPerMinute: 1_000 };
  const metrics = { metricsEnabled: true, port: 0 };
  server = await TestServer.start({ limits, delivery, metrics, log: { level: 'debug' } }, { log: recordingLog() });
  group = await server.createGroup();
  receiver = createServer((socket) => {
    sockets.add(socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket)));
    socket.on('data', (chunk) => {
      const seen = chunk.toString('latin1');
      const line = `${/^\S+ (\S+)/.exec(seen)?.[1]} ${/webhook-signature: (\S+)/.exec(seen)?.[1]} ${TEXT}`;
      const reflect = REFLECTIONS[requests % REFLECTIONS.length]!;
      requests += 1;
      // One answer in four is a success, so that the next failure counts as the first one again.
      socket.end(requests % 4 === 0 ? 'HTTP/1.1 204 X\r\n\r\n' : reflect(line));
    });
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const { port } = receiver.address() as AddressInfo;
  for (const [scheme, order] of [
    ['http', 'strict'],
    ['http', 'none'],
    ['https', 'strict'],
  ] as const) {
    const url = `${scheme}://127.0.0.1:${port}/${PRIVATE}/${order}?key=${PRIVATE}`;
    hooks.push(await registerHook(group, { url, order }));
  }
});
afterAll(async () => {
  await server.stop();
  for (const socket of sockets) socket.destroy();
  receiver.close();
  await once(receiver, 'close');
});

describe('what a receiver gives back of the request', () => {
  test('is in no line of the log, no metric, no answer and nothing that the administrator is shown', async () => {
    for (let n = 0; n < 30; n += 1) await postJson(group.webhook, { text: `${TEXT} ${n}` });
    await eventually(
      async () => requests,
      (count) => count >= FAILURES * 2,
    );
    const shown: unknown[] = [];
    for (const hook of hooks) {
      shown.push((await ask('POST', `${hook.url}/ping`)).body);
      shown.push((await ask('GET', `${hook.url}/deliveries`)).body);
      shown.push((await ask('GET', hook.url)).body);
      shown.push((await ask('POST', `${hook.url}/redeliver`, { from: '2020-01-01T00:00:00Z' })).body);
      shown.push(await server.operate('hooks.log', { hook: hook.id }));
      // `hooks.info` is the only operation that returns the whole URL of the target, so the test removes the URL from
      // its answer.
      shown.push({ ...(await server.operate<object>('hooks.info', { hook: hook.id })), url: '' });
    }
    shown.push(await server.operate('hooks.list-all', {}), await server.operate('server.status', {}));
    shown.push(await (await fetch(server.metricsUrl)).text());
    shown.push(lines.map(({ text }) => text));
    const all = shown.map((one) => JSON.stringify(one)).join('\n');
    expect(lines.length).toBeGreaterThan(10);
    for (const secret of [PRIVATE, TEXT, group.token, 'v1,', 'whsec_', ...hooks.map((hook) => hook.secret)])
      expect([secret, all.includes(secret)]).toEqual([secret, false]);
  });

  test('does not fill the log: failures of one hook are told once a minute', () => {
    const told = lines.filter(({ level }) => level !== 'debug').map(({ text }) => text);
    for (const { id } of hooks)
      expect(
        told.filter((text) => text.includes('"a delivery failed"') && text.includes(`"hook":${id},`)),
      ).toHaveLength(1);
    expect(told.length).toBeLessThan(20);
  });
});
