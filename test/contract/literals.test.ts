import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { exitCodeMeanings } from '../../src/cli/core/exit-codes.ts';
import { load } from '../config/load.ts';
import { Receiver, type Arrival } from '../support/receiver.ts';
import { TestServer, type TestGroup } from '../support/server.ts';

// The names here are parts of other programs and files: callers, receivers and administrators have written down these
// paths, keys, sentences, headers, states and statuses. Each is a literal here, so that a renaming inside the program
// cannot change both sides at once.

const ROOT = join(import.meta.dirname, '..', '..');
const WRONG_TOKEN = 'Wrong integration token';
const NO_HOOK = { status: 'Webhook with given id not found', message: 'Webhook with given id not found' };

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: any; // oxlint-disable-line typescript/no-explicit-any -- tests compare it whole
}

let server: TestServer;
let group: TestGroup;
let receiver: Receiver;
beforeAll(async () => {
  server = await TestServer.start({ limits: { hookRegistrationsPerGroupPerMinute: 1000 } });
  group = await server.createGroup('Lobby');
  receiver = await Receiver.start();
});
afterAll(async () => {
  await server.stop();
  await receiver.stop();
});

/** Sends one request below `/v1/webhooks/`; a body is sent as JSON. */
async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${server.url}/v1/webhooks/${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const answer: Answer = {
    status: response.status,
    headers: response.headers,
    body: text === '' ? null : JSON.parse(text),
  };
  expect({
    type: answer.headers.get('content-type'),
    cache: answer.headers.get('cache-control'),
    referrer: answer.headers.get('referrer-policy'),
  }).toEqual({ type: 'application/json; charset=utf-8', cache: 'no-store', referrer: 'no-referrer' });
  return answer;
}

const onGroup = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
  call(method, `${group.token}${path}`, body, headers);

/** Registers a new receiver and returns its id and secret. */
async function register(path: string, options: Record<string, unknown> = {}) {
  const answer = await onGroup('POST', '/reverse', { url: receiver.url(path), ...options });
  expect([answer.status, Object.keys(answer.body)]).toEqual([201, ['id', 'secret']]);
  return answer.body as { id: number; secret: string };
}

describe('a token that is not known', () => {
  test.each([
    ['POST', '', { text: 'x' }, 404, { status: 'failure', message: WRONG_TOKEN }],
    ['POST', '/reverse', { url: 'https://a.example/' }, 404, { message: WRONG_TOKEN }],
    ['GET', '/reverse', undefined, 404, { message: WRONG_TOKEN }],
    ['GET', '/reverse/1', undefined, 404, { message: WRONG_TOKEN }],
    ['DELETE', '/reverse/1', undefined, 404, { message: WRONG_TOKEN }],
    ['GET', '/status', undefined, 410, { message: 'This token no longer exists(or never existed)' }],
  ])('%s …%s', async (method, path, body, status, expected) => {
    const answer = await call(method, `unknown${path}`, body);
    expect([answer.status, answer.body]).toEqual([status, expected]);
  });
});

describe('POST /v1/webhooks/<token>', () => {
  test('answers 200 with one body that every caller accepts', async () => {
    const { status, body } = await onGroup('POST', '', { text: 'hello' });
    const id = expect.stringMatching(new RegExp(`^${group.id}:[1-9]\\d*$`));
    expect([status, body]).toEqual([200, { status: 'Ok', ok: true, success: true, id }]);
  });

  test('takes a form, plain text and a trailing slash', async () => {
    for (const [path, type, body] of [
      ['', 'application/x-www-form-urlencoded', 'text=from+a+form'],
      ['', 'application/x-www-form-urlencoded', `payload=${encodeURIComponent('{"text":"x"}')}`],
      ['/', 'text/plain', 'plain'],
    ] as const) {
      const answer = await fetch(`${group.webhook}${path}`, {
        method: 'POST',
        headers: { 'content-type': type },
        body,
      });
      expect(answer.status).toBe(200);
      await answer.arrayBuffer();
    }
  });

  test.each([
    ['no text', {}, {}, 400],
    ['white space', { text: ' \n' }, {}, 400],
    ['40,001 characters', { text: 'x'.repeat(40_001) }, {}, 413],
    ['a key that no header can carry', { text: 'x' }, { 'idempotency-key': 'a b' }, 400],
    ['hops of 3', { text: 'x' }, { 'klatch-hops': '3' }, 508],
  ])('refuses %s', async (_name, body, headers, status) => {
    const answer = await onGroup('POST', '', body, headers);
    expect([answer.status, typeof answer.body.message]).toEqual([status, 'string']);
  });

  test.each([
    ['idempotency-key', 422],
    ['webhook-id', 200],
    ['x-github-delivery', 200],
    ['x-gitlab-event-uuid', 200],
  ])('%s: the same body posts once, another body is answered with %i', async (header, status) => {
    const headers = { [header]: `key-of-${header}` };
    const first = await onGroup('POST', '', { text: 'first' }, headers);
    expect((await onGroup('POST', '', { text: 'first' }, headers)).body).toEqual(first.body);
    expect((await onGroup('POST', '', { text: 'second' }, headers)).status).toBe(status);
  });

  test('an archived group is gone, and a wrong method names the right one', async () => {
    const archived = await server.createGroup('Archive');
    await server.operate('groups.archive', { group: archived.id });
    const answer = await call('POST', archived.token, { text: 'x' });
    expect([answer.status, answer.body.message]).toEqual([410, 'This group is archived']);
    const wrong = await onGroup('PUT', '');
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST, OPTIONS']);
  });
});

describe('/v1/webhooks/<token>/reverse', () => {
  test('registers, lists, checks and unregisters', async () => {
    const { id, secret } = await register('/life');
    expect([Number.isInteger(id) && id > 0 && id < 2 ** 31, secret.startsWith('whsec_')]).toEqual([true, true]);
    const list = await onGroup('GET', '/reverse');
    expect(list.status).toBe(200);
    expect(list.body).toContainEqual({ id, url: receiver.url('/life'), state: 'active', pending: 0 });
    const check = await onGroup('GET', `/reverse/${id}`);
    expect([check.status, check.body]).toEqual([
      200,
      {
        status: 'Ok',
        state: 'active',
        pending: 0,
        oldest_pending_at: null,
        last_success_at: null,
        last_error: null,
        next_attempt_at: null,
      },
    ]);
    const gone = await onGroup('DELETE', `/reverse/${id}`);
    expect([gone.status, gone.body]).toEqual([202, { status: 'Ok' }]);
    for (const method of ['GET', 'DELETE']) {
      const again = await onGroup(method, `/reverse/${id}`);
      expect([again.status, again.body]).toEqual([410, NO_HOOK]);
    }
  });

  test.each([
    ['a relative address', { url: '/path' }, 400, 'Malformed outgoing hook uri'],
    ['credentials', { url: 'https://user:password@a.example/' }, 400, 'Malformed outgoing hook uri'],
    ['a fragment', { url: 'https://a.example/#x' }, 400, 'Malformed outgoing hook uri'],
    ['another scheme', { target_url: 'ftp://a.example/' }, 400, 'Malformed outgoing hook uri'],
  ])('refuses %s', async (_name, body, status, message) => {
    const answer = await onGroup('POST', '/reverse', body);
    expect([answer.status, answer.body]).toEqual([status, { message }]);
  });

  test('refuses a second hook for one address', async () => {
    await register('/twice');
    const answer = await onGroup('POST', '/reverse', { url: receiver.url('/twice') });
    expect([answer.status, answer.body]).toEqual([
      409,
      { message: 'Webhooks with provided uri is already registered' },
    ]);
  });

  test('takes every option at registration and in a change', async () => {
    const options = { description: 'd', order: 'none', batch: 100, signature: 'v1', skip: ['webhook', 'bot'] };
    const { id } = await register('/options', options);
    const changed = await onGroup('PATCH', `/reverse/${id}`, {
      paused: true,
      order: 'strict',
      batch: 1,
      signature: 'v1',
      skip: [],
      rotate_secret: true,
    });
    expect([changed.status, changed.body.state]).toEqual([200, 'paused']);
    expect(changed.body.secret).toMatch(/^whsec_/);
  });

  test('pings, shows its deliveries, sends again and discards the backlog', async () => {
    const { id } = await register('/log');
    const ping = await onGroup('POST', `/reverse/${id}/ping`);
    expect([ping.status, Object.keys(ping.body)]).toEqual([200, ['delivered', 'category', 'code', 'duration_ms']]);
    expect((await onGroup('GET', `/reverse/${id}/deliveries?limit=100`)).body).toEqual([]);
    await onGroup('PATCH', `/reverse/${id}`, { paused: true });
    const posted = await onGroup('POST', '', { text: 'pending' });
    const again = await onGroup('POST', `/reverse/${id}/redeliver`, { only: [posted.body.id] });
    expect(again.status).toBe(202);
    expect((await onGroup('POST', `/reverse/${id}/redeliver`, { from: posted.body.id })).status).toBe(202);
    const discarded = await onGroup('POST', `/reverse/${id}/redeliver`, { discard_backlog: true });
    expect([discarded.status, discarded.body]).toEqual([202, { status: 'Ok', skipped: expect.any(Number) }]);
  });
});

test('any method on /v1/webhooks/<token>/status answers 200', async () => {
  for (const method of ['GET', 'POST', 'DELETE']) {
    const answer = await onGroup(method, '/status');
    expect([answer.status, answer.body]).toEqual([200, { status: 'Ok' }]);
  }
});

test.each([
  ['/v1/status', 200],
  ['/v1/ready', 200],
  ['/v1/about', 200],
  ['/v1/keys', 200],
  ['/v1/groups/invites/unknown', 410],
])('GET %s answers %i', async (path, status) => {
  const response = await fetch(`${server.url}${path}`);
  expect(response.status).toBe(status);
  await response.arrayBuffer();
});

describe('a delivery', () => {
  /** Registers a receiver and posts a message to the group. Resolves with the delivery. */
  async function deliver(path: string, text: string): Promise<{ arrival: Arrival; id: number; secret: string }> {
    const { id, secret } = await register(path);
    const count = receiver.arrivals.length;
    expect((await onGroup('POST', '', { text })).status).toBe(200);
    for (let seen = count + 1; ; seen += 1) {
      const arrival = (await receiver.received(seen))[seen - 1]!;
      if (arrival.path === path) return { arrival, id, secret };
    }
  }

  test('has the body of the contract', async () => {
    const { arrival } = await deliver('/body', '/deploy now');
    const { seq } = arrival.body.data.message;
    expect(arrival.body).toMatchObject({
      type: 'message.created',
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      data: {
        group: { id: group.id, title: 'Lobby' },
        message: { id: `${group.id}:${seq}`, seq, text: '/deploy now', attachments: [] },
        sender: { kind: 'webhook' },
        command: { name: 'deploy', text: 'now' },
      },
    });
    expect(Object.keys(arrival.body.data.message)).toEqual(
      expect.arrayContaining(['id', 'seq', 'text', 'sent_at', 'attachments']),
    );
    expect(Object.keys(arrival.body.data.sender)).toEqual(expect.arrayContaining(['id', 'name', 'nick', 'kind']));
  });

  test('is signed as Standard Webhooks 1.0.0 says', async () => {
    const { arrival, id, secret } = await deliver('/signed', 'signed');
    const { headers, raw, body } = arrival;
    expect(headers['webhook-id']).toBe(`${id}_${group.id}_${body.data.message.seq}`);
    expect(headers['webhook-timestamp']).toMatch(/^\d{10}$/);
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    const signed = `${headers['webhook-id'] as string}.${headers['webhook-timestamp'] as string}.${raw}`;
    expect(headers['webhook-signature']).toBe(`v1,${createHmac('sha256', key).update(signed).digest('base64')}`);
    expect(headers['klatch-hops']).toBe('0');
    expect(headers['user-agent']).toMatch(/^Klatch\/\d+\.\d+\.\d+/);
    expect(headers['content-type']).toMatch(/^application\/json/);
  });
});

describe('the installation', () => {
  test('reads every key of the specification', () => {
    const { config, warnings } = load(`
      secret = "mT4vX0cQ9uLr2YwKz7BnEjHs5PdGfA1oIiRtNqVkWxE"
      project-name = "Example"
      public-endpoints = ["ws://chat.example.org:9080", "tcp://chat.example.org:9070"]
      http.base-uri = "https://chat.example.org"
      services.postgresql { host = "db.example.org", db = "chat", user = "chatter", password = "p w" }
      services.klatch-activation { uri = "https://gate.example.org/", auth-token = "gate-token" }
      services.google.push.keys = []
      modules.security.server-keys = []
    `);
    expect(warnings).toEqual([]);
    expect(config.postgresql).toMatchObject({ host: 'db.example.org', db: 'chat', user: 'chatter', password: 'p w' });
    expect(config.activation).toMatchObject({ authToken: 'gate-token' });
    expect([config.projectName, config.serverSigningKeys, config.googlePush.keys]).toEqual(['Example', [], []]);
  });

  test('has the exit statuses that service managers act on', () => {
    expect(Object.keys(exitCodeMeanings).map(Number)).toEqual([0, 1, 64, 69, 70, 73, 74, 75, 76, 77, 78]);
  });

  test('has the actions of the service', () => {
    const init = readFileSync(join(ROOT, 'debian', 'klatch.init'), 'utf8');
    for (const action of ['start', 'stop', 'restart', 'status']) {
      expect(init).toMatch(new RegExp(`^  ${action}(\\)| \\|)`, 'm'));
    }
    expect(init).toContain('/etc/klatch/server.conf');
  });
});
