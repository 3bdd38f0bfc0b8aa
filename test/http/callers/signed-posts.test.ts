import { createHmac } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { PostSignature } from '../../../src/http/callers/post-signature.ts';
import { incomingSecretOf } from '../../../src/model/incoming-secret.ts';
import { newestText, storedMessages } from '../wire.ts';
import { eventually } from '../../support/eventually.ts';
import { TestServer, type TestGroup } from '../../support/server.ts';

let server: TestServer;
let group: TestGroup;
let secret: string;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.stop());
beforeEach(async () => {
  group = await server.createGroup();
  ({ secret } = await set({}));
});

type Headers = Readonly<Record<string, string>>;

const set = (input: object): Promise<{ secret: string; signed_only: boolean }> =>
  server.operate('groups.set-incoming-secret', { group: group.id, ...input });
const hmac = (body: string | Buffer, key = secret): string => createHmac('sha256', key).update(body).digest('hex');

const json = { 'content-type': 'application/json' };

async function post(body: string | Buffer | FormData, headers: Headers, suffix = '') {
  const answer = await fetch(`${group.webhook}${suffix}`, {
    method: 'POST',
    body: body as NonNullable<RequestInit['body']>,
    headers,
  });
  const text = await answer.text();
  expect(text).not.toContain(secret.slice(6, 20));
  return { status: answer.status, text };
}

const postedCount = async (): Promise<number> => (await storedMessages(server, group)).length;

const GITHUB = JSON.stringify({
  action: 'opened',
  issue: { number: 1, title: 'Door', html_url: 'https://example.org/1', user: { login: 'ada' } },
  repository: { full_name: 'a/b' },
  sender: { login: 'ada' },
});
const GITLAB = JSON.stringify({
  object_kind: 'push',
  event_name: 'push',
  ref: 'refs/heads/main',
  user_name: 'Ada',
  project: { path_with_namespace: 'a/b', web_url: 'https://example.org/a/b' },
  total_commits_count: 1,
  commits: [{ id: 'a1b2c3d4', message: 'Fix', url: 'https://example.org/c', author: { name: 'Ada' } }],
});
const GRAFANA = JSON.stringify({
  receiver: 'klatch',
  status: 'firing',
  state: 'alerting',
  orgId: 1,
  title: '[FIRING:1] Disk',
  groupKey: '{}:{alertname="Disk"}',
  alerts: [{ status: 'firing', labels: { alertname: 'Disk' }, annotations: {}, startsAt: '2026-11-20T10:00:00Z' }],
});
const SENTRY = JSON.stringify({
  action: 'created',
  data: { issue: { id: '1', title: 'Oops', project: { slug: 'web' } } },
});

const unixTime = (offsetS = 0): string => String(Math.floor(Date.now() / 1_000) + offsetS);

/** By program: how it signs a post. `body` is the body that is sent. */
const PROGRAMS: Readonly<Record<string, { body: string; event: Headers; signature: (body: string) => Headers }>> = {
  github: {
    body: GITHUB,
    event: { 'x-github-event': 'issues' },
    signature: (body) => ({ 'x-hub-signature-256': `sha256=${hmac(body)}` }),
  },
  gitea: {
    body: GITHUB,
    event: { 'x-gitea-event': 'issues' },
    signature: (body) => ({ 'x-gitea-signature': hmac(body) }),
  },
  forgejo: {
    body: GITHUB,
    event: { 'x-gitea-event': 'issues', 'x-forgejo-event': 'issues' },
    signature: (body) => ({ 'x-forgejo-signature': hmac(body), 'x-gitea-signature': hmac(body) }),
  },
  gogs: {
    body: GITHUB,
    event: { 'x-gogs-event': 'issues' },
    signature: (body) => ({ 'x-gogs-signature': hmac(body) }),
  },
  gitlab: {
    body: GITLAB,
    event: { 'x-gitlab-event': 'Push Hook' },
    signature: () => ({ 'x-gitlab-token': secret }),
  },
  grafana: {
    body: GRAFANA,
    event: {},
    signature: (body) => ({ 'x-grafana-alerting-signature': hmac(body) }),
  },
  sentry: {
    body: SENTRY,
    event: { 'sentry-hook-resource': 'issue' },
    signature: (body) => ({ 'sentry-hook-signature': hmac(body) }),
  },
};

describe.each(Object.entries(PROGRAMS))('a post of %s', (_name, { body, event, signature }) => {
  const headers = { ...json, ...event };

  test('is taken with its signature', async () => {
    expect((await post(body, { ...headers, ...signature(body) })).status).toBe(200);
    expect(await postedCount()).toBe(1);
  });

  test('is 401 without one, with an empty one, with one of another secret, and with one of another body', async () => {
    const names = Object.keys(signature(body));
    const all = (value: (name: string) => string): Headers =>
      Object.fromEntries(names.map((name) => [name, value(name)]));
    const isToken = names[0] === 'x-gitlab-token';
    const refused = [
      {},
      all(() => ''),
      all((name) => (name === 'x-hub-signature-256' ? 'sha256=' : '')),
      all((name) => (name === 'x-hub-signature-256' ? 'sha256=' : '') + hmac(body, 'another secret 0123')),
      all(() => secret.slice(0, -1)),
      all(() => 'x'),
      ...(isToken ? [] : [signature(`${body} `)]),
    ];
    for (const each of refused) {
      const answer = await post(body, { ...headers, ...each });
      expect([each, answer.status]).toEqual([each, 401]);
      expect(JSON.parse(answer.text).message).toMatch(/secret of the group|secret of this group/);
    }
    expect(await postedCount()).toBe(0);
  });

  test('needs no signature where the group has no secret, whatever its headers are', async () => {
    await server.operate('groups.remove-incoming-secret', { group: group.id });
    expect((await post(body, { ...headers, 'x-hub-signature-256': 'sha256=00', 'x-gitlab-token': 'x' })).status).toBe(
      200,
    );
    expect(await postedCount()).toBe(1);
  });
});

test('a post without a signature, and one whose signature does not hold, are recorded for the owners with their format', async () => {
  const github = { ...json, 'x-github-event': 'issues' };
  expect((await post(GITHUB, github)).status).toBe(401);
  expect((await post(GITHUB, { ...github, 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` }, '/github')).status).toBe(
    401,
  );
  interface Recorded {
    readonly code: string;
    readonly format: string | null;
  }
  const { refused_posts: recorded } = await eventually(
    () => server.operate<{ refused_posts: readonly Recorded[] }>('groups.info', { group: group.id }),
    (info) => info.refused_posts.length === 2,
  );
  expect(recorded).toEqual([
    expect.objectContaining({ code: 'invalid_signature', format: 'github' }),
    expect.objectContaining({ code: 'invalid_signature', format: 'github' }),
  ]);
});

describe('a signature', () => {
  const github = { ...json, 'x-github-event': 'issues' };

  test('of GitHub is the one in its documentation', () => {
    // https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
    const digest = '757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17';
    const documented = incomingSecretOf("It's a Secret to Everybody", false);
    const signature = new PostSignature({ 'x-hub-signature-256': `sha256=${digest}` }, documented);
    signature.verifyBody(Buffer.from('Hello, World!'));
    expect(signature.isSignatureVerified).toBe(true);
  });

  test.each([
    ['standardwebhooks', () => new StandardWebhook(secret)],
    ['svix', () => new SvixWebhook(secret)],
  ])('of Standard Webhooks is the one of %s, for any body', async (_name, library) => {
    const now = new Date();
    const body = 'plain text';
    const standard = {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
      'webhook-signature': `v1a,xx ${library().sign('msg_1', now, body)}`,
    };
    expect((await post(body, { 'content-type': 'text/plain', ...standard })).status).toBe(200);
    expect((await post('other text', { 'content-type': 'text/plain', ...standard })).status).toBe(401);
    const { 'webhook-signature': _, ...unsigned } = standard;
    expect((await post(body, { 'content-type': 'text/plain', ...unsigned })).status).toBe(401);
    expect(await postedCount()).toBe(1);
  });

  test('of Standard Webhooks and of Grafana with its time is not taken more than five minutes away from it', async () => {
    const webhook = new StandardWebhook(secret);
    for (const [offset, status] of [
      [-290, 200],
      [290, 200],
      [-310, 401],
      [310, 401],
    ] as const) {
      const time = unixTime(offset);
      const id = `msg${offset}`;
      const signature = webhook.sign(id, new Date(Number(time) * 1_000), 'text');
      const headers = { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signature };
      expect([offset, (await post('text', headers)).status]).toEqual([offset, status]);
      const grafana = {
        ...json,
        'x-grafana-alerting-timestamp': time,
        'x-grafana-alerting-signature': hmac(`${time}:${GRAFANA}`),
      };
      expect([offset, (await post(GRAFANA, grafana)).status]).toEqual([offset, status]);
    }
  });

  test('is over the bytes as they were sent: of a form, of a compressed body, of a text in another charset', async () => {
    const form = `payload=${encodeURIComponent(GITHUB)}`;
    const formType = { 'content-type': 'application/x-www-form-urlencoded', 'x-github-event': 'issues' };
    const zipped = gzipSync(GITHUB);
    const latin = Buffer.from('caf\xe9', 'latin1');
    const latinType = { 'content-type': 'text/plain; charset=iso-8859-1' };
    const zippedType = { ...github, 'content-encoding': 'gzip' };
    const signed = (body: string | Buffer): Headers => ({ 'x-hub-signature-256': `sha256=${hmac(body)}` });
    expect((await post(form, { ...formType, ...signed(form) })).status).toBe(200);
    expect((await post(form, { ...formType, ...signed(GITHUB) })).status).toBe(401);
    expect((await post(zipped, { ...zippedType, ...signed(zipped) })).status).toBe(200);
    expect((await post(zipped, { ...zippedType, ...signed(GITHUB) })).status).toBe(401);
    expect((await post(latin, { ...latinType, ...signed(latin) })).status).toBe(200);
    expect(await newestText(server, group)).toBe('café');
    expect((await post(latin, { ...latinType, ...signed('café') })).status).toBe(401);
    expect(await postedCount()).toBe(3);
  });

  test('of a form with files is over all of it, and where it does not hold the files are not kept', async () => {
    const head = '--B\r\ncontent-disposition: form-data; name="text"\r\n\r\nwith a file\r\n';
    const file = '--B\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\ncontent\r\n--B--\r\n';
    const type = { 'content-type': 'multipart/form-data; boundary=B' };
    const body = head + file;
    expect((await post(body, { ...type, 'x-hub-signature-256': `sha256=${hmac(head)}` })).status).toBe(401);
    const files = (): Promise<{ count: number }[]> =>
      server.database.query((sql) => sql`select count(*)::int as count from file`);
    expect(await files()).toEqual([{ count: 0 }]);
    expect((await post(body, { ...type, 'x-hub-signature-256': `sha256=${hmac(body)}` })).status).toBe(200);
    expect(await files()).toEqual([{ count: 1 }]);
  });

  test('that is there has to hold, also where another one does and where the format has none', async () => {
    const good = `sha256=${hmac(GITHUB)}`;
    const both = { ...github, 'x-hub-signature-256': good, 'x-gitea-signature': hmac('other') };
    expect((await post(GITHUB, both)).status).toBe(401);
    expect((await post('text', { 'x-gitlab-token': 'wrong' })).status).toBe(401);
    expect(await postedCount()).toBe(0);
  });
});

describe('a group with a secret', () => {
  const slack = JSON.stringify({ attachments: [{ text: 'from Gitea' }] });

  test('takes unsigned posts of formats without signatures, and with signed_only none', async () => {
    const gitea = { ...json, 'x-gitea-event': 'push', 'x-gitea-signature': '', 'x-hub-signature-256': 'sha256=' };
    expect((await post(slack, gitea, '/slack')).status).toBe(200);
    expect((await post('text', {})).status).toBe(200);
    expect(await set({ signed_only: true })).toEqual({ group: group.id, secret, signed_only: true });
    expect(await post(slack, gitea, '/slack')).toMatchObject({ status: 401, text: expect.stringMatching(/signed/) });
    const form = new FormData();
    form.set('text', 'a form');
    form.set('file', new Blob(['x']), 'x.txt');
    expect((await post(form, {})).status).toBe(401);
    const signed = { ...gitea, 'x-gitea-signature': hmac(slack), 'x-hub-signature-256': `sha256=${hmac(slack)}` };
    expect((await post(slack, signed, '/slack')).status).toBe(200);
    expect(await postedCount()).toBe(3);
  });

  test('refuses a body of any shape on the address of a format that is signed', async () => {
    for (const suffix of ['/github', '/gitea', '/gitlab', '/grafana', '/sentry'])
      expect([suffix, (await post('forged', {}, suffix)).status]).toEqual([suffix, 401]);
    expect(await postedCount()).toBe(0);
  });

  test('answers in the form that the program expects', async () => {
    await set({ signed_only: true });
    const answer = await post(JSON.stringify({ content: 'x' }), json, '/discord');
    expect([answer.status, JSON.parse(answer.text)]).toEqual([
      401,
      { code: 0, message: expect.stringMatching(/signed/) },
    ]);
  });

  test('keeps its secret until it is set, rotated or removed, and takes a text that a program made', async () => {
    expect((await set({ signed_only: false })).secret).toBe(secret);
    const rotated = await set({ rotate: true });
    expect(rotated.secret).toMatch(/^whsec_/);
    expect(rotated.secret).not.toBe(secret);
    const headers = { ...json, 'x-github-event': 'issues', 'x-hub-signature-256': `sha256=${hmac(GITHUB)}` };
    expect((await post(GITHUB, headers)).status).toBe(401);
    expect((await set({ secret: '0123456789abcdef' })).secret).toBe('0123456789abcdef');
    const webhook = new StandardWebhook(Buffer.from('0123456789abcdef'), { format: 'raw' });
    const time = unixTime();
    const signature = webhook.sign('m', new Date(Number(time) * 1_000), 'x');
    const standard = { 'webhook-id': 'm', 'webhook-timestamp': time, 'webhook-signature': signature };
    expect((await post('x', standard)).status).toBe(200);
    const shown = await server.operate('groups.show-incoming-secret', { group: group.id });
    expect(shown).toEqual({ group: group.id, secret: '0123456789abcdef', signed_only: false });
    await server.operate('groups.remove-incoming-secret', { group: group.id });
    expect(await server.operate('groups.show-incoming-secret', { group: group.id })).toMatchObject({ secret: null });
  });

  test('refuses secrets that are short, not of visible ASCII, or no base64 behind whsec_', async () => {
    for (const bad of ['fifteen-letters', 'x'.repeat(257), 'a secret with spaces', 'whsec_!!!!!!!!!!!!!!!!!!!!'])
      await expect(set({ secret: bad })).rejects.toThrow(/^secret: must have/);
  });

  test('keeps its secret over a new token, and nothing of it is readable in the database', async () => {
    const { token } = await server.operate<{ token: string }>('groups.rotate-token', { group: group.id });
    group = { ...group, token, webhook: `${server.url}/v1/webhooks/${token}` };
    const headers = { ...json, 'x-github-event': 'issues' };
    expect((await post(GITHUB, headers)).status).toBe(401);
    expect((await post(GITHUB, { ...headers, 'x-hub-signature-256': `sha256=${hmac(GITHUB)}` })).status).toBe(200);
    const rows = await server.database.query((sql) => sql`select * from integration`);
    expect(JSON.stringify(rows)).not.toContain(secret.slice(6, 30));
  });
});
