import { createHmac } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { storedMessages } from '../wire.ts';
import { TestServer, type TestGroup } from '../../support/server.ts';

let server: TestServer;
let group: TestGroup;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.stop());
beforeEach(async () => {
  group = await server.createGroup();
});

const MIB = 1024 * 1024;
const github = { 'content-type': 'application/json', 'x-github-event': 'push' };

/** A push event of this many bytes: its commits have long messages, of which the group shows the beginning. */
function push(bytes: number): string {
  const commits = Array.from({ length: 20 }, (_, n) => ({
    id: `${n}`.padStart(40, 'a'),
    message: `Fix ${n}`,
    url: `https://example.org/${n}`,
    author: { name: 'Ada' },
    added: ['x'.repeat(Math.ceil(bytes / 20))],
  }));
  return JSON.stringify({
    ref: 'refs/heads/main',
    compare: 'https://example.org/compare',
    commits,
    repository: { full_name: 'a/b' },
    pusher: { name: 'ada' },
    sender: { login: 'ada' },
  });
}

async function post(body: string | Buffer, headers: Record<string, string>, suffix = '') {
  const answer = await fetch(`${group.webhook}${suffix}`, {
    method: 'POST',
    body: body as NonNullable<RequestInit['body']>,
    headers,
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

const texts = async (): Promise<string[]> => (await storedMessages(server, group)).map(({ text }) => text);

test('a push of four MiB is read as a small one, by its header and by its address', async () => {
  expect((await post(push(10), github)).status).toBe(200);
  const large = push(3.9 * MIB);
  expect((await post(large, github)).status).toBe(200);
  expect((await post(large, { 'x-github-event': 'push' }, '/github')).status).toBe(200);
  const zipped = gzipSync(push(300_000));
  expect(zipped.length * 50).toBeLessThan(300_000);
  expect((await post(zipped, { ...github, 'content-encoding': 'gzip' })).status).toBe(413);
  const [small, ...others] = await texts();
  expect(small).toMatch(/pushed 20 commits/);
  expect(others).toEqual([small, small]);
});

test('an event past http.max-event-body, and another post past http.max-body-size, are 413', async () => {
  expect(await post(push(4.1 * MIB), github)).toEqual({
    status: 413,
    body: { message: 'The body is larger than 4194304 bytes (http.max-event-body)' },
  });
  expect(await post(JSON.stringify({ text: 'x', rest: 'y'.repeat(1.1 * MIB) }), {})).toEqual({
    status: 413,
    body: { message: 'The body is larger than 1048576 bytes (http.max-body-size)' },
  });
  expect(await texts()).toEqual([]);
});

test('a large post has its key, its signature and its files, as a small one', async () => {
  const { secret } = await server.operate<{ secret: string }>('groups.set-incoming-secret', { group: group.id });
  const body = push(MIB);
  const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
  const delivery = { ...github, 'x-github-delivery': 'one' };
  expect((await post(body, delivery)).status).toBe(401);
  const first = await post(body, { ...delivery, 'x-hub-signature-256': signature });
  expect(await post(body, { ...delivery, 'x-hub-signature-256': signature })).toEqual(first);
  const base64 = Buffer.alloc(500_000, 'x').toString('base64');
  const apprise = {
    version: '1.0',
    title: '',
    message: 'file',
    type: 'info',
    attachments: [
      { filename: 'a', base64 },
      { filename: 'small', base64: Buffer.from('a short file.').toString('base64') },
    ],
  };
  expect((await post(JSON.stringify(apprise), {})).status).toBe(200);
  const [, row] = await server.database.query(
    (sql) => sql`select attachments from message where conversation_id = ${group.id} order by seq`,
  );
  expect(row).toMatchObject({
    attachments: [
      { name: 'a', size: 500_000 },
      { name: 'small', size: 13 },
    ],
  });
});

test('a large alert is edited, and its end is told', async () => {
  const alert = (status: string): string =>
    JSON.stringify({
      version: '4',
      groupKey: 'disk',
      status,
      receiver: 'klatch',
      groupLabels: { alertname: 'Disk' },
      padding: 'x'.repeat(400_000),
      alerts: [
        {
          status,
          labels: { alertname: 'Disk', instance: 'a' },
          annotations: {},
          startsAt: '2026-11-22T10:00:00Z',
          endsAt: '2026-11-22T10:05:00Z',
          fingerprint: 'f',
        },
      ],
    });
  expect((await post(alert('firing'), {})).status).toBe(200);
  expect((await post(alert('resolved'), {})).status).toBe(200);
  const [shown, end] = await texts();
  expect(shown).toMatch(/^🟢 Disk resolved\n/);
  expect(end).toMatch(/^🟢 Disk resolved/);
});
