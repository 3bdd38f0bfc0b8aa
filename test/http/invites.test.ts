import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import { createPerson, type TestPerson } from '../support/people.ts';
import { recordingLog } from '../support/recording-log.ts';
import { TestServer } from '../support/server.ts';
import { scrape } from '../metrics/scrape.ts';
import { expectResponseHeaders, request, type WireResponse } from './wire.ts';

/** The Accept header of Chromium when somebody opens a link. */
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';
const SENTENCE = 'This invitation is no longer valid, or never existed: ask for a new one';
const lines: string[] = [];
let server: TestServer;
let alice: TestPerson;
beforeAll(async () => {
  const changes = {
    log: { level: 'debug' },
    limits: { unknownTokensPerSecondPerSource: 10 },
    metrics: { metricsEnabled: true },
  } as const;
  server = await TestServer.start(changes, { log: recordingLog(lines) });
  alice = await createPerson(server, 'alice');
});
afterAll(() => server.stop());

interface Made {
  readonly group: number;
  readonly id: number;
  readonly token: string;
}

async function invite(group: object, how: object = {}): Promise<Made> {
  const { id: number } = await callAs<{ id: number }>(server, alice, 'groups.create', group);
  const made = await callAs<{ id: number; link: string }>(server, alice, 'invites.create', { group: number, ...how });
  return { group: number, id: made.id, token: made.link.split('/').at(-1)! };
}

function get(token: string, headers: Record<string, string> = {}, method = 'GET'): Promise<WireResponse> {
  return request(server.port, { method, path: `/v1/groups/invites/${token}`, headers });
}

/** The text of a page between its tags, as a browser shows it. */
function textOf(html: string): string {
  const text = html.replace(/<style>[^]*?<\/style>/, '').replace(/<[^>]*>/g, ' ');
  const signs: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
  return text.replace(/&([a-z0-9#]+);/g, (_, name: string) => signs[name]!).replace(/\s+/g, ' ');
}

function expectPageHeaders(response: WireResponse): void {
  const style = /<style>([^]*?)<\/style>/.exec(response.text)![1]!;
  const hash = createHash('sha256').update(style).digest('base64');
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'content-security-policy': `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    vary: 'Accept',
  });
}

describe("an invitation's link", () => {
  test('is answered with JSON to programs', async () => {
    const { token } = await invite({ title: 'Open', about: 'Everything', public: true }, { valid_s: 3_600 });
    for (const accept of [undefined, '*/*', 'application/json', 'text/plain, */*']) {
      const response = await get(token, accept === undefined ? {} : { accept });
      expectResponseHeaders(response);
      expect([response.status, response.headers.get('vary')]).toEqual([200, 'Accept']);
      expect(response.body).toEqual({
        group: { title: 'Open', about: 'Everything', members: 1 },
        invited_by: 'alice',
        expires_at: expect.stringMatching(/^20\d\d-\d\d-\d\dT.*Z$/) as unknown,
      });
    }
  });

  test('is answered with a page to browsers, which says how to join', async () => {
    const { token } = await invite({ title: 'Open', about: 'First line\nSecond line', public: true });
    const response = await get(token, { accept: BROWSER });
    expect(response.status).toBe(200);
    expectPageHeaders(response);
    const text = textOf(response.text);
    for (const part of [
      'alice invites you to a group on Klatch under test',
      'Open',
      '1 member',
      'First line Second line',
      'Join in this browser',
      'Get an account on Klatch under test , if you have none: this link is what you sign up with.',
      'connected to ws://klatch.example:9080',
      `http://klatch.example/v1/groups/invites/${token}`,
      /good until 20\d\d-\d\d-\d\d \d\d:\d\d UTC/,
    ])
      expect(text).toMatch(part);
    expect(response.text).toContain(`<a class="join" href="http://klatch.example/join#${token}">`);
    const head = await get(token, { accept: BROWSER }, 'HEAD');
    expect([head.status, head.text, head.headers.get('content-length')]).toEqual([
      200,
      '',
      response.headers.get('content-length'),
    ]);
  });

  test('is nothing that people sign up with where only the administrator creates accounts', async () => {
    const other = await TestServer.start({ registration: 'closed' });
    try {
      const bob = await createPerson(other, 'bob');
      const { id: number } = await callAs<{ id: number }>(other, bob, 'groups.create', { title: 'Open' });
      const { link } = await callAs<{ link: string }>(other, bob, 'invites.create', { group: number });
      const path = `/v1/groups/invites/${link.split('/').at(-1)!}`;
      const page = await request(other.port, { method: 'GET', path, headers: { accept: BROWSER } });
      expect(textOf(page.text)).toContain(
        'You need an account on Klatch under test : its administrator gives you one.',
      );
    } finally {
      await other.stop();
    }
  });

  test('shows nothing of what somebody puts into its path beside the token', async () => {
    const { token } = await invite({ title: 'Clean' });
    for (const path of [`Call%20555-1234%2F${token}`, `evil.example%2F${token}%2F`, `%20${token}`]) {
      const response = await get(path, { accept: BROWSER });
      expect(response.status).toBe(200);
      expect(textOf(response.text)).toContain(`Join with this link: http://klatch.example/v1/groups/invites/${token} `);
      expect(response.text).not.toMatch(/555|evil/);
    }
    const none = await get('Call%20555-1234', { accept: BROWSER });
    expect(none.status).toBe(410);
    expect(none.text).not.toContain('555');
  });

  test('of a group that is not public names nobody, on neither', async () => {
    const { token } = await invite({ title: 'Inner circle' });
    expect((await get(token)).body).toMatchObject({ group: { title: 'Inner circle', members: 1 }, invited_by: null });
    const page = await get(token, { accept: BROWSER });
    expect(textOf(page.text)).toContain('You are invited to a group on Klatch under test');
    expect(page.text).not.toContain('alice');
  });

  test('shows a hostile title and description as text, and has nothing that runs or loads', async () => {
    const title = `</title><script>alert(1)</script>"'&amp; <img src=x onerror=alert(2)>`;
    const about = `</p></main></style><style>*{display:none}</style><a href="javascript:alert(3)">x</a>`;
    const { token } = await invite({ title, about });
    const page = await get(token, { accept: BROWSER });
    // The page has exactly one link.
    const text = page.text.replace(
      `<a class="join" href="http://klatch.example/join#${token}">Join in this browser</a>`,
      '',
    );
    const tags = new Set([...text.matchAll(/<\/?([a-z0-9]+)/g)].map(([, name]) => name));
    for (const tag of ['script', 'img', 'a', 'iframe', 'link', 'form', 'svg', 'object'])
      expect(tags).not.toContain(tag);
    expect(text.match(/<style>/g)).toHaveLength(1);
    expect(text).not.toMatch(/<[^>]*\b(?:src|href|on\w+)\s*=/);
    expect(textOf(text)).toContain(title);
    expect(textOf(text)).toContain(about);
  });

  test('that is over or never was, or whose group is archived, is gone, and all read the same', async () => {
    const [ended, revoked, archived] = [
      await invite({ title: 'A' }),
      await invite({ title: 'B' }),
      await invite({ title: 'C' }),
    ];
    await server.database.query((sql) => sql`update group_invite set expires_at = now() where id = ${ended.id}`);
    await callAs(server, alice, 'invites.revoke', { group: revoked.group, invite: revoked.id });
    await callAs(server, alice, 'groups.archive', { group: archived.group });
    const pages = new Set<string>();
    for (const token of [ended.token, revoked.token, archived.token, 'A'.repeat(43), 'nonsense', '%E0%A4%A']) {
      const json = await get(token);
      expect([json.status, json.body]).toEqual([410, { message: SENTENCE }]);
      const page = await get(token, { accept: BROWSER });
      expect(page.status).toBe(410);
      expectPageHeaders(page);
      expect(textOf(page.text)).toContain(SENTENCE);
      pages.add(page.text);
    }
    expect(pages.size).toBe(1);
    const found = await scrape(server.metricsUrl);
    expect(found.value('klatch_http_errors_total', { code: 'invalid_invite' })).toBeGreaterThanOrEqual(12);
  });

  test.each(['POST', 'PUT', 'DELETE', 'PATCH'])('is only looked at: not by %s', async (method) => {
    const { token } = await invite({ title: 'T' });
    const response = await get(token, { accept: BROWSER }, method);
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
  });

  test('never comes into the log, whole or in part', async () => {
    const { token } = await invite({ title: 'Logged' });
    await get(token, { accept: BROWSER });
    await get(`${token.slice(0, -1)}_`, { accept: BROWSER });
    expect(lines.join('\n')).not.toContain(token.slice(0, 20));
  });
});

test('an address that tries links is answered more and more slowly, and others are not', async () => {
  const slow = await TestServer.start({
    limits: { unknownTokensPerSecondPerSource: 2 },
    http: { trustedProxies: ['127.0.0.1'] },
  });
  try {
    const openInvite = (source: string): Promise<WireResponse> =>
      request(slow.port, {
        method: 'GET',
        path: `/v1/groups/invites/${'B'.repeat(43)}`,
        headers: { 'x-forwarded-for': source },
      });
    const started = performance.now();
    // The server accepts 10 requests at once, and the rest at 2 a second.
    const tries = Array.from({ length: 18 }, () => openInvite('192.0.2.1'));
    const tried = Promise.all(tries);
    await Promise.race(tries);
    expect(await Promise.race([openInvite('192.0.2.2').then(() => 'other'), tried])).toBe('other');
    expect(new Set((await tried).map(({ status }) => status))).toEqual(new Set([410]));
    expect(performance.now() - started).toBeGreaterThan(3_800);
  } finally {
    await slow.stop();
  }
});

test('a failure inside the server is told without its cause', async () => {
  const { token } = await invite({ title: 'T' });
  await server.database.query((sql) => sql`alter table group_invite rename to group_invite_away`);
  try {
    const response = await get(token, { accept: BROWSER });
    expect([response.status, response.body]).toEqual([500, { message: 'The server failed; its log has the cause' }]);
  } finally {
    await server.database.query((sql) => sql`alter table group_invite_away rename to group_invite`);
  }
});
