import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { expectResponseHeaders, request, storedMessages } from '../http/wire.ts';
import { createTestDatabase } from '../support/database.ts';
import { postJson, TestServer, type JsonAnswer, type TestGroup } from '../support/server.ts';

const FOREIGN = ['webhook-id', 'X-GitHub-Delivery', 'X-Gitlab-Event-UUID'];
const ALL = ['Idempotency-Key', ...FOREIGN];

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.stop());

async function texts(group: TestGroup): Promise<string[]> {
  return (await storedMessages(server, group)).map((message) => message.text);
}

function post(group: TestGroup, text: string, headers: Record<string, string>): Promise<JsonAnswer> {
  return postJson(group.webhook, { text }, headers);
}

describe('one key and one body', () => {
  test.each(ALL)('get the first answer again and post nothing: %s', async (header) => {
    const group = await server.createGroup();
    const first = await post(group, 'once', { [header]: 'key-1' });
    expect(first.body).toEqual({ status: 'Ok', ok: true, success: true, id: `${group.id}:1` });
    await post(group, 'in between', {});
    const again = await post(group, 'once', { [header.toLowerCase()]: 'key-1' });
    expect([again.status, again.body]).toEqual([200, first.body]);
    expect(await texts(group)).toEqual(['once', 'in between']);
  });

  test('post one message when two come at once, or twenty', async () => {
    const group = await server.createGroup();
    for (const count of [2, 20]) {
      const headers = { 'idempotency-key': `at once ${count}`.replaceAll(' ', '-') };
      const posts = Array.from({ length: count }, () => post(group, `${count} at once`, headers));
      const answers = await Promise.all(posts);
      expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]));
      expect(new Set(answers.map((answer) => answer.body.id)).size).toBe(1);
    }
    expect(await texts(group)).toEqual(['2 at once', '20 at once']);
  });

  test('post one message when they come at once through two servers', async () => {
    const other = await TestServer.start({}, { database: server.database });
    try {
      const group = await server.createGroup();
      const webhooks = [group.webhook, `${other.url}/v1/webhooks/${group.token}`];
      for (let round = 0; round < 10; round += 1) {
        const headers = { 'idempotency-key': `round-${round}` };
        const answers = await Promise.all(webhooks.map((url) => postJson(url, { text: `${round}` }, headers)));
        expect(answers.map((answer) => answer.body.id)).toEqual([
          `${group.id}:${round + 1}`,
          `${group.id}:${round + 1}`,
        ]);
      }
      expect(await texts(group)).toHaveLength(10);
    } finally {
      await other.stop();
    }
  });

  test('get the first answer after a restart of the server', async () => {
    const database = await createTestDatabase();
    try {
      const before = await TestServer.start({}, { database });
      const group = await before.createGroup();
      const first = await postJson(group.webhook, { text: 'x' }, { 'idempotency-key': 'kept' });
      await before.stop();
      const after = await TestServer.start({}, { database });
      try {
        const webhook = `${after.url}/v1/webhooks/${group.token}`;
        const again = await postJson(webhook, { text: 'x' }, { 'idempotency-key': 'kept' });
        expect([again.status, again.body]).toEqual([200, first.body]);
        expect(await storedMessages(after, group)).toHaveLength(1);
      } finally {
        await after.stop();
      }
    } finally {
      await database.drop();
    }
  });
});

describe('one key and another body', () => {
  test('are 422 with Idempotency-Key', async () => {
    const group = await server.createGroup();
    await post(group, 'one', { 'idempotency-key': 'k' });
    const answer = await post(group, 'two', { 'idempotency-key': 'k' });
    expect(answer.status).toBe(422);
    const message = 'This Idempotency-Key was used for another body; use a new key for a new message';
    expect(answer.body).toEqual({ message });
    expectResponseHeaders(answer);
    expect(await texts(group)).toEqual(['one']);
  });

  test('are 422 for one of the two when both come at once', async () => {
    const group = await server.createGroup();
    const headers = { 'idempotency-key': 'k' };
    const answers = await Promise.all([post(group, 'one', headers), post(group, 'two', headers)]);
    expect(answers.map((answer) => answer.status).sort((a, b) => a - b)).toEqual([200, 422]);
    expect(await texts(group)).toHaveLength(1);
  });

  test('are 422 when only a label differs, or white space around the JSON', async () => {
    const group = await server.createGroup();
    const headers = { 'idempotency-key': 'k' };
    await postJson(group.webhook, { text: 'x' }, headers);
    expect((await postJson(group.webhook, { text: 'x', username: 'u' }, headers)).status).toBe(422);
    const path = `/v1/webhooks/${group.token}`;
    expect((await request(server.port, { path, headers, body: '{"text":"x"} ' })).status).toBe(422);
  });

  test.each(FOREIGN)('are posted with %s', async (header) => {
    const group = await server.createGroup();
    const headers = { [header]: 'k' };
    await post(group, 'one', headers);
    expect((await post(group, 'two', headers)).body).toMatchObject({ id: `${group.id}:2` });
    expect((await post(group, 'one', headers)).body).toMatchObject({ id: `${group.id}:1` });
    expect(await texts(group)).toEqual(['one', 'two']);
  });
});

describe('a key', () => {
  test('belongs to one group', async () => {
    const [one, two] = [await server.createGroup('One'), await server.createGroup('Two')];
    const headers = { 'idempotency-key': 'shared' };
    expect((await post(one, 'x', headers)).body).toMatchObject({ id: `${one.id}:1` });
    expect((await post(two, 'y', headers)).body).toMatchObject({ id: `${two.id}:1` });
  });

  test('stays when the group’s token is rotated', async () => {
    const group = await server.createGroup();
    const first = await post(group, 'x', { 'idempotency-key': 'k' });
    const { token } = await server.operate<{ token: string }>('groups.rotate-token', { group: group.id });
    const again = await postJson(`${server.url}/v1/webhooks/${token}`, { text: 'x' }, { 'idempotency-key': 'k' });
    expect(again.body).toEqual(first.body);
  });

  test('of each header has a namespace of its own', async () => {
    const group = await server.createGroup();
    for (const header of ALL) await post(group, 'same', { [header]: 'k' });
    expect(await texts(group)).toHaveLength(4);
  });

  test('is not used up by a post that was refused', async () => {
    const group = await server.createGroup();
    expect((await post(group, ' ', { 'idempotency-key': 'k' })).status).toBe(400);
    expect((await post(group, 'x', { 'idempotency-key': 'k' })).status).toBe(200);
  });

  test('is taken from Idempotency-Key before the others, and from them in their order', async () => {
    for (let strongest = 0; strongest < ALL.length - 1; strongest += 1) {
      const group = await server.createGroup();
      const [name = '', ...weaker] = ALL.slice(strongest);
      const others = (value: string): Record<string, string> => Object.fromEntries(weaker.map((h) => [h, value]));
      await post(group, 'same', { [name]: 'k', ...others('a') });
      await post(group, 'same', { [name]: 'k', ...others('b') });
      expect(await texts(group)).toHaveLength(1);
      await post(group, 'same', { [name]: 'l', ...others('a') });
      expect(await texts(group)).toHaveLength(2);
    }
  });

  test.each(ALL)('has up to 255 characters: %s', async (header) => {
    const group = await server.createGroup();
    const longest = '!~'.repeat(127);
    expect((await post(group, 'x', { [header]: `${longest}x` })).status).toBe(200);
    expect((await post(group, 'x', { [header]: `${longest}y` })).body).toMatchObject({ id: `${group.id}:2` });
    expect((await post(group, 'x', { [header]: `${longest}x` })).body).toMatchObject({ id: `${group.id}:1` });
  });

  test.each([
    ['256 characters', 'k'.repeat(256)],
    ['nothing', ''],
    ['a space', 'a b'],
    ['a tab', 'a\tb'],
    ['Latin-1', 'gr\u00fc\u00dfe'],
    ['UTF-8', Buffer.from('😀').toString('latin1')],
  ])('with %s is refused, and the value is not in the answer', async (_, value) => {
    const group = await server.createGroup();
    for (const header of ALL) {
      const path = `/v1/webhooks/${group.token}`;
      const answer = await request(server.port, { path, headers: { [header]: value }, body: 'x' });
      const message = `${header.toLowerCase()}: must have 1 to 255 visible ASCII characters`;
      expect([answer.status, answer.body]).toEqual([400, { message }]);
      expectResponseHeaders(answer);
    }
    expect(await texts(group)).toEqual([]);
  });

  test('that comes twice in a request is refused', async () => {
    const group = await server.createGroup();
    const path = `/v1/webhooks/${group.token}`;
    const headers = { 'Idempotency-Key': 'a', 'idempotency-key': 'b' };
    expect((await request(server.port, { path, headers, body: 'x' })).status).toBe(400);
  });

  test('is found behind hundreds of other headers', async () => {
    const group = await server.createGroup();
    const path = `/v1/webhooks/${group.token}`;
    const many = Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`x-${i}`, '1']));
    const headers = { ...many, 'idempotency-key': 'last' };
    const ids: string[] = [];
    for (let time = 0; time < 2; time += 1) {
      ids.push((await request(server.port, { path, headers, body: 'x' })).body.id);
    }
    expect(ids).toEqual([`${group.id}:1`, `${group.id}:1`]);
  });
});
