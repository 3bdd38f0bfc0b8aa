import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { callAs } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import { createPerson, signIn } from '../../support/people.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { request, type WireRequest } from '../wire.ts';

/** A text that every hostile body contains, and every header except User-Agent. */
const MARKER = 'xyzzymarker';
const MAX_BODY_BYTES = 64 * 1_024;

let server: TestServer;
const lines: string[] = [];
beforeAll(async () => {
  const limits = { attachmentsPerMessage: 2 };
  const options = { limits, http: { maxBodyBytes: MAX_BODY_BYTES }, log: { level: 'debug' as const } };
  server = await TestServer.start(options, { log: recordingLog(lines) });
});
afterAll(() => server.stop());

/** A row of refused posts, as `groups.info` returns it. */
interface RefusedPosts {
  readonly posts: number;
  readonly user_agent: string | null;
  readonly format: string | null;
  readonly code: string;
  readonly sentence: string;
  readonly first_at: string;
  readonly last_at: string;
}

async function refusedPostsOf(group: TestGroup): Promise<readonly RefusedPosts[]> {
  const { refused_posts } = await server.operate<{ refused_posts: RefusedPosts[] }>('groups.info', { group: group.id });
  return refused_posts;
}

/** Resolves when this many refused posts of the group are stored. */
function storedOf(group: TestGroup, posts: number): Promise<readonly RefusedPosts[]> {
  const ask = (): Promise<readonly RefusedPosts[]> => refusedPostsOf(group);
  return eventually(ask, (rows) => rows.reduce((sum, row) => sum + row.posts, 0) >= posts);
}

/**
 * Waits for a refused post in another group that comes after all earlier ones. By then the earlier ones are stored, if
 * they are stored at all.
 */
async function storeEverythingSoFar(): Promise<void> {
  const sentinel = await server.createGroup();
  await send(sentinel, { path: '/v1/webhooks/<T>', body: ' ' });
  await storedOf(sentinel, 1);
}

/** Sends a request. The group's token replaces `<T>`. */
function send(group: TestGroup, { path, headers = {}, body, method = 'POST' }: Sent): ReturnType<typeof request> {
  const filled = (text: string): string => text.replaceAll('<T>', group.token);
  const sent: WireRequest = {
    method,
    path: filled(path),
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, filled(value)])),
    body: typeof body === 'string' ? filled(body) : body,
  };
  return request(server.port, sent);
}

interface Sent {
  readonly path: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body: string | Buffer;
}

const JSON_TYPE = { 'content-type': 'application/json' };
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' };
const MULTIPART_TYPE = { 'content-type': 'multipart/form-data; boundary=b' };
const BASE = '/v1/webhooks/<T>';

function multipart(...parts: readonly string[]): string {
  return `${parts.map((part) => `--b\r\nContent-Disposition: form-data; ${part}\r\n`).join('')}--b--\r\n`;
}
const filePart = (field: string): string =>
  `name="${field}"; filename="${MARKER}.txt"\r\nContent-Type: text/plain\r\n\r\n${MARKER}`;

/** By kind of request: the status of the answer, its error code, and the format that read the body. */
const HOSTILE: readonly (readonly [string, Sent, number, string, string | null])[] = [
  ['JSON that is cut off', { path: BASE, headers: JSON_TYPE, body: `{"text":"${MARKER}` }, 400, 'invalid_input', null],
  ['JSON that breaks at the marker', { path: BASE, headers: JSON_TYPE, body: MARKER }, 400, 'invalid_input', null],
  ['an array', { path: BASE, headers: JSON_TYPE, body: `["${MARKER}"]` }, 400, 'invalid_input', null],
  ['another type', { path: BASE, body: `{"text":["${MARKER}"]}` }, 400, 'invalid_input', null],
  ['unknown keys', { path: BASE, body: `{"${MARKER}":"${MARKER}"}` }, 400, 'invalid_input', null],
  ['too deep', { path: BASE, body: `${'{"a":'.repeat(200)}"${MARKER}"${'}'.repeat(200)}` }, 400, 'invalid_input', null],
  ['half of a pair', { path: BASE, body: `{"text":"${MARKER}\\ud800"}` }, 400, 'invalid_input', null],
  ['NUL', { path: BASE, body: `${MARKER}\0` }, 400, 'invalid_input', null],
  ['bytes that are no UTF-8', { path: BASE, body: Buffer.from(`${MARKER}\xff`, 'latin1') }, 400, 'invalid_input', null],
  ['white space', { path: BASE, body: '  ' }, 400, 'invalid_input', null],
  [
    'an unknown charset',
    { path: BASE, headers: { 'content-type': `text/plain; charset=${MARKER}` }, body: MARKER },
    415,
    'unsupported_media',
    null,
  ],
  [
    'an encoding',
    { path: BASE, headers: { 'content-encoding': MARKER }, body: MARKER },
    415,
    'unsupported_media',
    null,
  ],
  ['no gzip', { path: BASE, headers: { 'content-encoding': 'gzip' }, body: MARKER }, 400, 'invalid_input', null],
  [
    'a bomb',
    { path: BASE, headers: { 'content-encoding': 'gzip' }, body: gzipSync(MARKER.repeat(100_000)) },
    413,
    'too_large',
    null,
  ],
  ['a large body', { path: BASE, body: MARKER.repeat(10_000) }, 413, 'too_large', null],
  ['a long text', { path: BASE, body: MARKER.repeat(4_000) }, 413, 'too_large', null],
  ['a header', { path: BASE, headers: { 'idempotency-key': `${MARKER} x` }, body: MARKER }, 400, 'invalid_input', null],
  ['hops', { path: BASE, headers: { 'klatch-hops': MARKER }, body: MARKER }, 400, 'invalid_input', null],
  ['updates', { path: `${BASE}?updates=${MARKER}`, body: MARKER }, 400, 'invalid_input', null],
  ['a payload', { path: BASE, headers: FORM_TYPE, body: `payload=${MARKER}` }, 400, 'invalid_input', null],
  [
    'a form of a format',
    { path: BASE, headers: FORM_TYPE, body: `payload={"attachments":[{"color":"${MARKER}"}]}` },
    400,
    'invalid_input',
    'slack',
  ],
  ['no multipart', { path: BASE, headers: MULTIPART_TYPE, body: MARKER }, 400, 'invalid_input', null],
  [
    'an unknown field',
    { path: BASE, headers: MULTIPART_TYPE, body: multipart(`name="${MARKER}"\r\n\r\n${MARKER}`) },
    400,
    'invalid_input',
    null,
  ],
  [
    'a file in another field',
    { path: BASE, headers: MULTIPART_TYPE, body: multipart(filePart(MARKER)) },
    400,
    'invalid_input',
    null,
  ],
  [
    'a text as a file',
    { path: BASE, headers: MULTIPART_TYPE, body: multipart(filePart('text')) },
    400,
    'invalid_input',
    null,
  ],
  [
    'too many files',
    { path: BASE, headers: MULTIPART_TYPE, body: multipart(...Array.from({ length: 3 }, () => filePart('file'))) },
    400,
    'invalid_input',
    null,
  ],
  ['Slack', { path: BASE, body: `{"attachments":[{"color":"${MARKER}"}]}` }, 400, 'invalid_input', 'slack'],
  ['Discord', { path: BASE, body: `{"embeds":[{"timestamp":"${MARKER}"}]}` }, 400, 'invalid_input', 'discord'],
  ['a suffix', { path: `${BASE}/discord`, body: `{"x":"${MARKER}"}` }, 400, 'invalid_input', 'discord'],
  ['a suffix, unread', { path: `${BASE}/slack`, headers: JSON_TYPE, body: MARKER }, 400, 'invalid_input', 'slack'],
  ['/hooks/T', { path: '/hooks/<T>', body: `{"icon_url":"${MARKER}"}` }, 400, 'invalid_input', 'slack'],
  ['/hooks/any/T', { path: '/hooks/any/<T>', body: `{"icon_url":"${MARKER}"}` }, 400, 'invalid_input', 'slack'],
  ['PUT', { method: 'PUT', path: '/api/webhooks/1/<T>', body: `{"x":"${MARKER}"}` }, 400, 'invalid_input', 'discord'],
  [
    '/message?token=T',
    { path: '/message?token=<T>', body: `{"priority":"${MARKER}"}` },
    400,
    'invalid_input',
    'gotify',
  ],
  [
    '/message with a header',
    { path: '/message', headers: { 'x-gotify-key': '<T>' }, body: `{"extras":"${MARKER}"}` },
    400,
    'invalid_input',
    'gotify',
  ],
  ['a bot', { path: '/bot100:<T>/sendMessage', body: `{"chat_id":"${MARKER}"}` }, 400, 'invalid_input', 'telegram'],
  ['/notify/T', { path: '/notify/<T>', body: `{"tag":"${MARKER}"}` }, 400, 'invalid_input', 'apprise'],
  [
    'the root',
    { path: '/', headers: { 'idempotency-key': `${MARKER} x` }, body: `{"topic":"<T>","message":"${MARKER}"}` },
    400,
    'invalid_input',
    'ntfy',
  ],
];

describe('a post that is refused for what it holds', () => {
  test.each(HOSTILE)('is stored without anything of it: %s', async (_name, sent, status, code, format) => {
    const group = await server.createGroup();
    // The second time the token is cached, and a post to the group's plain webhook URL takes the fast path.
    for (let n = 0; n < 2; n += 1) {
      const headers = { 'user-agent': 'Some-Program/1.0', ...sent.headers };
      expect((await send(group, { ...sent, headers })).status).toBe(status);
    }
    const [row, ...others] = await storedOf(group, 2);
    expect(others).toEqual([]);
    expect(row).toMatchObject({ posts: 2, user_agent: 'Some-Program/1.0', format, code });
    expect(row!.sentence).toMatch(/^[A-Z'a-z-]+[ :]/);
    expect(row!.first_at <= row!.last_at).toBe(true);
    const rows = await server.database.query(
      (sql) => sql<{ row: string }[]>`select r::text as row from refused_post r`,
    );
    expect(rows.map(({ row: text }) => text).join('\n')).not.toContain(MARKER);
    expect(lines.join('\n')).not.toContain(MARKER);
  });

  test('because its key belongs to another one, or its group is archived, is stored too', async () => {
    const group = await server.createGroup();
    const headers = { 'idempotency-key': 'k' };
    expect((await send(group, { path: BASE, headers, body: 'one' })).status).toBe(200);
    expect((await send(group, { path: BASE, headers, body: MARKER })).status).toBe(422);
    await server.operate('groups.archive', { group: group.id });
    expect((await send(group, { path: `${BASE}/slack`, body: MARKER })).status).toBe(410);
    const codes = (await storedOf(group, 2)).map(({ code, format }) => [code, format]);
    expect(codes).toEqual([
      ['group_archived', 'slack'],
      ['idempotency_key_reused', null],
    ]);
  });

  test('because it came to a path or by a method that takes none is stored too, and its answer says what it did', async () => {
    const group = await server.createGroup();
    const headers = { 'user-agent': 'Some-Program/1.0' };
    for (const path of [`${BASE}/${MARKER}`, `${BASE}/slack/${MARKER}`])
      expect((await send(group, { path, headers, body: MARKER })).status).toBe(404);
    for (const method of ['PUT', 'PATCH'])
      expect((await send(group, { method, path: BASE, headers, body: MARKER })).status).toBe(405);
    for (const path of [`${BASE}/reverse/5/${MARKER}`, `${BASE}/status/${MARKER}`])
      expect((await send(group, { path, headers, body: MARKER })).status).toBe(404);
    expect((await send(group, { method: 'GET', path: `${BASE}/${MARKER}`, body: '' })).status).toBe(404);
    const rows = await storedOf(group, 4);
    expect(rows.map(({ posts, sentence }) => [posts, sentence])).toEqual([
      [2, "address: the group's URL takes posts by POST alone; this one came by another method"],
      [2, "address: nothing takes posts at this path below the group's URL; klatch group info lists the addresses"],
    ]);
    await storeEverythingSoFar();
    expect(await refusedPostsOf(group)).toEqual(rows);
  });

  test('counts with those that differ from it in nothing, or in the numbers of the sentence; newest first', async () => {
    const group = await server.createGroup();
    for (const body of ['{"a" 7', '{"abc" 7', '{']) await send(group, { path: BASE, headers: JSON_TYPE, body });
    await storedOf(group, 3);
    await send(group, { path: BASE, headers: { ...JSON_TYPE, 'user-agent': 'other' }, body: '{' });
    const rows = await storedOf(group, 4);
    expect(rows.map(({ posts, user_agent }) => [posts, user_agent])).toEqual([
      [1, 'other'],
      [1, null],
      [2, null],
    ]);
  });

  test('shows of its User-Agent 100 characters at most, and none that a terminal obeys', async () => {
    const group = await server.createGroup();
    const headers = { 'user-agent': `\x9b31mEvil\xa0\xff/1.0 ${'x'.repeat(200)}` };
    await send(group, { path: BASE, headers, body: ' ' });
    const [row] = await storedOf(group, 1);
    expect(row!.user_agent).toBe(`31mEvil/1.0 ${'x'.repeat(200)}`.slice(0, 100));
  });

  test('is stored for its own group alone', async () => {
    const [one, other] = [await server.createGroup(), await server.createGroup()];
    await send(one, { path: `${BASE}/json`, headers: JSON_TYPE, body: '{' });
    await send(other, { path: BASE, body: ' ' });
    expect((await storedOf(one, 1)).map(({ posts }) => posts)).toEqual([1]);
    expect((await storedOf(other, 1)).map(({ sentence }) => sentence)).toEqual([
      'text: must hold something other than white space',
    ]);
  });
});

describe('nothing is stored of', () => {
  test('posts with a token that is unknown, or was replaced, wherever it stands', async () => {
    const group = await server.createGroup();
    await send(group, { path: BASE, body: 'it is remembered' });
    await server.operate('groups.rotate-token', { group: group.id });
    for (const [, sent] of HOSTILE) await send(group, sent);
    await storeEverythingSoFar();
    expect(await refusedPostsOf(group)).toEqual([]);
  });

  test('posts that are taken, events that are not shown, and what clients ask', async () => {
    const group = await server.createGroup();
    const alice = await createPerson(server, 'alice');
    await server.operate('groups.add-member', { group: group.id, user: 'alice' });
    await send(group, { path: BASE, body: 'fine' });
    await send(group, { path: BASE, headers: { 'x-github-event': 'watch' }, body: '{"action":"x","repository":{}}' });
    await expect(callAs(server, alice, 'messages.send', { conversation: group.id, text: ' ' })).rejects.toThrow('text');
    await send(group, { path: `${BASE}/reverse`, body: ' ' });
    await storeEverythingSoFar();
    expect(await refusedPostsOf(group)).toEqual([]);
  });

  test('posts that are to be repeated', async () => {
    const limits = { postsPerSecondPerToken: 0.01, postBurstPerToken: 1, tokenQueueTimeoutMs: 0 };
    const slow = await TestServer.start({ limits });
    try {
      const group = await slow.createGroup();
      const post = async (body: string): Promise<number> =>
        (await fetch(group.webhook, { method: 'POST', body })).status;
      expect([await post(' '), await post(' ')]).toEqual([400, 503]);
      await slow.restart();
      const { refused_posts } = await slow.operate<{ refused_posts: RefusedPosts[] }>('groups.info', {
        group: group.id,
      });
      expect(refused_posts.map(({ code, posts }) => [code, posts])).toEqual([['invalid_input', 1]]);
    } finally {
      await slow.stop();
    }
  });
});

describe('refused posts', () => {
  test('are shown to whoever may see the token, and to nobody else', async () => {
    const people = await Promise.all(
      ['owner', 'admin', 'member', 'root'].map((nick) => createPerson(server, nick, { admin: nick === 'root' })),
    );
    const [owner, admin, member, root] = people;
    const { id, webhook } = await callAs(server, owner!, 'groups.create', { title: 'Operations' });
    await callAs(server, owner!, 'groups.add-member', { group: id, user: 'admin', role: 'admin' });
    await callAs(server, owner!, 'groups.add-member', { group: id, user: 'member' });
    const group = { id, token: webhook.split('/').at(-1), webhook };
    await send(group, { path: BASE, body: ' ' });
    await storedOf(group, 1);
    const seenBy = async (person: { token: string }): Promise<readonly RefusedPosts[] | undefined> =>
      (await callAs(server, person, 'groups.info', { group: id })).refused_posts;
    for (const person of [owner, admin, root]) expect(await seenBy(person!)).toHaveLength(1);
    expect(await seenBy(member!)).toBeUndefined();
    expect(await seenBy(await signIn(server, owner!.id, ['groups:read']))).toBeUndefined();
    expect(await seenBy(await signIn(server, owner!.id, ['groups:read', 'hooks:manage']))).toHaveLength(1);
  });

  test('of a burst are stored together, all of them, in about one statement a second', async () => {
    await server.database.query((sql) =>
      sql.unsafe(`
        create table statement_count (n int not null);
        insert into statement_count values (0);
        create function count_statement() returns trigger language plpgsql as $$ begin
          update statement_count set n = n + 1; return null; end $$;
        create trigger count_statements after insert on refused_post for each statement
          execute function count_statement()`),
    );
    const group = await server.createGroup();
    const startedAt = performance.now();
    const agents = ['one', 'two', 'three', 'four', 'five'];
    await Promise.all(
      agents.map(async (agent) => {
        for (let n = 0; n < 100; n += 1) {
          const answer = await send(group, { path: BASE, headers: { 'user-agent': agent }, body: ' ' });
          expect(answer.status).toBe(400);
        }
      }),
    );
    const rows = await storedOf(group, 500);
    const seconds = (performance.now() - startedAt) / 1_000;
    expect(rows.map(({ posts }) => posts)).toEqual([100, 100, 100, 100, 100]);
    const [count] = await server.database.query((sql) => sql<{ n: number }[]>`select n from statement_count`);
    expect(count!.n).toBeGreaterThan(0);
    expect(count!.n).toBeLessThanOrEqual(Math.ceil(seconds));
  });

  test('that wait to be stored are stored by a stop', async () => {
    const group = await server.createGroup();
    await send(group, { path: BASE, body: ' ' });
    await server.restart();
    expect(await refusedPostsOf(group)).toHaveLength(1);
  });
});
