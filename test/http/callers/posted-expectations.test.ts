import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { storedMessages } from '../wire.ts';

let server: TestServer;
let group: TestGroup;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.stop());
beforeEach(async () => {
  group = await server.createGroup();
});

interface Expected {
  readonly key: string;
  readonly within: string;
  readonly last_post_at: string | null;
}

const expectations = async (): Promise<readonly Expected[]> =>
  (await server.operate<{ expectations: Expected[] }>('expectations.list', { group: group.id })).expectations;
const isSeen = ({ last_post_at: at }: Expected): boolean => at !== null;
const expected = async (): Promise<[string, string, boolean][]> =>
  (await expectations()).map((each) => [each.key, each.within, isSeen(each)]);

/** Posts to the group. Resolves to the status, with the sentence if it was refused. */
async function send(
  body: string | URLSearchParams | FormData | object,
  { query = '', suffix = '', headers = {} }: { query?: string; suffix?: string; headers?: Record<string, string> } = {},
): Promise<[status: number, sentence?: string | undefined]> {
  const isJson = typeof body === 'object' && !(body instanceof URLSearchParams) && !(body instanceof FormData);
  const answer = await fetch(`${group.webhook}${suffix}${query}`, {
    method: 'POST',
    headers: { ...(isJson ? { 'content-type': 'application/json' } : {}), ...headers },
    body: isJson ? JSON.stringify(body) : body,
  });
  const { message } = (await answer.json()) as { message?: string };
  return answer.ok ? [answer.status] : [answer.status, message];
}

const DISCORD = { content: 'done', embeds: [{ title: 'backup' }] };
/** Uptime Kuma's test of a monitor that is up: an event of success without a failure before it. */
const KUMA_UP = {
  heartbeat: { monitorID: 7, status: 1, time: '2026-11-22 10:00:00', msg: 'up' },
  monitor: { id: 7, name: 'web', url: 'https://web.example' },
  msg: '[web] up',
};

describe('a post sets what its group expects', () => {
  const form = new FormData();
  form.set('text', 'done');
  form.set('key', 'backup');
  form.set('expect', '26h');
  const withFile = new FormData();
  for (const [name, value] of form) withFile.set(name, value);
  withFile.set('file', new Blob(['log']), 'backup.log');

  test.each<[string, Parameters<typeof send>]>([
    ['in JSON', [{ text: 'done', key: 'backup', expect: '26h' }]],
    ['in JSON beside a state', [{ text: 'done', key: 'backup', expect: '26h', state: 'resolved' }]],
    ['in JSON with its address', [{ text: 'done' }, { query: '?key=backup&expect=26h' }]],
    [
      'in JSON with its key, and the duration in its address',
      [{ text: 'done', key: 'backup' }, { query: '?key=x&expect=26h' }],
    ],
    ['in a form', [new URLSearchParams({ text: 'done', key: 'backup', expect: '26h' })]],
    ['in a multipart form', [form]],
    ['in a form with a file', [withFile]],
    ['of plain text with its address', ['done', { query: '?key=backup&expect=26%20hours' }]],
    ['of another product with its address', [DISCORD, { query: '?expect=26h&key=backup' }]],
    [
      'of another product with a suffix and its address',
      [DISCORD, { suffix: '/discord', query: '?key=backup&expect=26h&wait=true' }],
    ],
    ['that is understood and not shown', [KUMA_UP, { query: '?key=backup&expect=26h' }]],
  ])('%s', async (_how, [body, sent]) => {
    const [status] = await send(body, sent);
    expect(status).toBe(200);
    expect(await expected()).toEqual([['backup', '26h', true]]);
  });

  test('whose key alone is a sign of life, and expects nothing new', async () => {
    await server.operate('expectations.set', { group: group.id, key: 'backup', within: '1d' });
    expect(await expected()).toEqual([['backup', '1d', false]]);
    await send({ text: 'done', key: 'other' });
    expect(await expected()).toEqual([['backup', '1d', false]]);
    await send('done', { query: '?key=backup' });
    expect(await expected()).toEqual([['backup', '1d', true]]);
  });

  test('and another one changes it, or removes it with off', async () => {
    await send({ text: 'done', key: 'backup', expect: '26h' });
    await send({ text: 'done', key: 'backup', expect: '2d' });
    expect(await expected()).toEqual([['backup', '2d', true]]);
    await send({ text: 'done', key: 'backup' });
    expect(await expected()).toEqual([['backup', '2d', true]]);
    await send({ text: 'the last one', key: 'backup', expect: 'off' });
    expect(await expected()).toEqual([]);
    expect((await storedMessages(server, group)).map(({ text }) => text)).toEqual([
      'done',
      'done',
      'done',
      'the last one',
    ]);
  });

  test('beside reporting an alert with the same key', async () => {
    await send({ text: 'it failed', key: 'backup', state: 'firing', expect: '26h' });
    await send({ text: 'it works', key: 'backup', state: 'resolved', expect: '26h' });
    expect((await storedMessages(server, group)).map(({ text }) => text)).toEqual([
      expect.stringContaining('🟢 resolved'),
      'it works',
    ]);
    expect(await expected()).toEqual([['backup', '26h', true]]);
  });

  test('and edits no message by its key alone', async () => {
    for (const text of ['one', 'two']) await send({ text, key: 'backup', expect: '26h' });
    expect((await storedMessages(server, group)).map(({ text }) => text)).toEqual(['one', 'two']);
  });
});

describe('what is wrong with an expectation', () => {
  const DURATION = 'expect: must be a duration from 1m to 366d, such as 26h, or off';
  const KEY = 'key: must be one line of 1 to 200 characters that can be seen';

  test.each([
    [{ expect: '26' }, DURATION],
    [{ expect: '59s' }, DURATION],
    [{ expect: '367d' }, DURATION],
    [{ expect: '1e9h' }, DURATION],
    [{ expect: '-26h' }, DURATION],
    [{ expect: 26 }, DURATION],
    [{ expect: true }, DURATION],
    [{ expect: '26h', key: '' }, KEY],
    [{ expect: '26h', key: 'a\nb' }, KEY],
    [{ expect: '26h', key: 'a\u202eb' }, KEY],
    [{ expect: '26h', key: 'k'.repeat(201) }, KEY],
  ])('refuses a post of ours: %j', async (fields, sentence) => {
    expect(await send({ text: 'done', key: 'backup', ...fields })).toEqual([400, sentence]);
    expect(await storedMessages(server, group)).toEqual([]);
  });

  test('refuses plain text with it in its address', async () => {
    expect(await send('done', { query: '?key=backup&expect=soon' })).toEqual([400, DURATION]);
  });

  test.each([
    [{ expect: '26h' }],
    [{ expect: '26h', key: 7 }],
    [{ key: 'a\nb' }],
    [{ key: 'k'.repeat(201) }],
    [{ key: 'backup', expect: null }],
  ])('is ignored in a post that may mean something else: %j', async (fields) => {
    expect(await send({ text: 'done', ...fields })).toEqual([200]);
    expect(await expected()).toEqual([]);
  });

  test.each(['?key=backup&expect=soon', '?expect=26h', '?key=&expect=26h', `?key=${'k'.repeat(300)}&expect=26h`])(
    'refuses no message of another product: %s',
    async (query) => {
      expect(await send(DISCORD, { query })).toEqual([200]);
      expect(await storedMessages(server, group)).toHaveLength(1);
      expect(await expected()).toEqual([]);
    },
  );

  test('takes the durations of its bounds', async () => {
    await send({ text: 'done', key: 'short', expect: '60s' });
    await send({ text: 'done', key: 'long', expect: '366 days' });
    await send({ text: 'done', key: 'week', expect: '1w' });
    await send({ text: 'done', key: 'odd', expect: '1.5h' });
    expect((await expected()).map(([key, within]) => [key, within])).toEqual([
      ['long', '366d'],
      ['odd', '90m'],
      ['short', '1m'],
      ['week', '7d'],
    ]);
  });

  test('is one more than 100 of a group: a post of ours is refused, another one is taken without it', async () => {
    await server.database.query(
      (sql) => sql`
        insert into expectation (conversation_id, key, within_s, due_ms)
        select ${group.id}, 'key ' || n, 3600, 1000000000 from generate_series(1, 100) n`,
    );
    const sentence = 'A group has at most 100 expectations: remove one first';
    expect(await send({ text: 'done', key: 'backup', expect: '26h' })).toEqual([403, sentence]);
    await expect(server.operate('expectations.set', { group: group.id, key: 'backup', within: '26h' })).rejects.toThrow(
      sentence,
    );
    expect(await send({ text: 'done', key: 'key 7', expect: '26h' })).toEqual([200]);
    expect(await send(DISCORD, { query: '?key=backup&expect=26h' })).toEqual([200]);
    expect(await storedMessages(server, group)).toHaveLength(2);
    expect(await expected()).toHaveLength(100);
  });
});

describe('a post whose token was replaced', () => {
  test('sets and removes nothing', async () => {
    await server.operate('expectations.set', { group: group.id, key: 'kept', within: '1d' });
    await send('known');
    await server.operate('groups.rotate-token', { group: group.id });
    expect(await send({ text: 'done', key: 'backup', expect: '26h' })).toEqual([404, 'Wrong integration token']);
    expect(await send({ text: 'done', key: 'kept', expect: 'off' })).toEqual([404, 'Wrong integration token']);
    expect(await expected()).toEqual([['kept', '1d', false]]);
  });
});
