import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { newestText, request, storedMessages } from '../wire.ts';
import { TestServer, type TestGroup } from '../../support/server.ts';

let server: TestServer;
let group: TestGroup;
beforeAll(async () => {
  server = await TestServer.start();
  group = await server.createGroup();
});
afterAll(() => server.stop());

const UNKNOWN_TOKEN = 'unknown-token-0123456789';

interface Sent {
  readonly body: unknown;
  readonly method?: string;
  readonly headers?: Record<string, string>;
}

/** Sends a request. The group's token replaces `T` in the path. */
async function send(path: string, { body, method = 'POST', headers = {} }: Sent, token = group.token) {
  const answer = await fetch(`${server.url}${path.replace('T', token)}`, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: answer.status, type: answer.headers.get('content-type'), body: await answer.text() };
}

const SLACK = { attachments: [{ color: 'danger', title: 'Disk full', text: 'on <https://db1.example.org|db1>' }] };
const SLACK_TEXT = '🔴 Disk full\non db1 (https://db1.example.org)';
const OWN_ANSWER = { status: 'Ok', ok: true, success: true, id: expect.any(String) };

describe('a foreign body on the address of a group', () => {
  test.each<[string, unknown, string]>([
    ['attachments of Slack', SLACK, SLACK_TEXT],
    ['an embed of Discord', { embeds: [{ title: 'Up again', description: 'web' }] }, 'Up again\nweb'],
    ['any object with the usual names', { message: 'done', title: 'Backup' }, 'Backup\ndone'],
    ['a text of ours beside unknown keys', { text: '<as|it> &lt;is', title: 'x' }, '<as|it> &lt;is'],
  ])('is read: %s', async (_name, body, text) => {
    const answer = await send('/v1/webhooks/T', { body });
    expect([answer.status, JSON.parse(answer.body)]).toEqual([200, OWN_ANSWER]);
    expect(await newestText(server, group)).toBe(text);
  });

  test.each([
    ['payload of Slack', `payload=${encodeURIComponent(JSON.stringify(SLACK))}`, SLACK_TEXT],
    ['message and title', 'title=Backup&message=done', 'Backup\ndone'],
    ['a text in which = stands', 'message=done&load=3', 'message=done&load=3'],
  ])('is read as a form: %s', async (_name, body, text) => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    expect((await send('/v1/webhooks/T', { body, headers })).status).toBe(200);
    expect(await newestText(server, group)).toBe(text);
  });

  test('is read as ntfy by its headers, also without a body', async () => {
    const headers = { 'content-type': 'text/plain', 'x-title': 'Backup', 'x-message': 'done' };
    expect((await send('/v1/webhooks/T', { body: '', headers })).status).toBe(200);
    expect(await newestText(server, group)).toBe('Backup\ndone');
  });

  describe('with files in base64', () => {
    const file = (filename: string, base64 = 'YWJj'): object => ({ filename, base64, mimetype: 'text/plain' });
    const apprise = (attachments: readonly object[], message = 'done'): object => {
      return { version: '1.0', title: '', message, attachments, type: 'info' };
    };
    const newestFiles = async (): Promise<unknown> => {
      const rows = await server.database.query(
        (sql) => sql<{ attachments: { name: string; size: number }[] }[]>`
          select attachments from message where conversation_id = ${group.id} order by seq desc limit 1`,
      );
      return rows[0]!.attachments.map(({ name, size }) => [name, size]);
    };
    const storedFiles = async (): Promise<number> =>
      (await server.database.query((sql) => sql<{ n: number }[]>`select count(*)::int as n from file`))[0]!.n;

    test('carries them, and names those that cannot be read or are too many', async () => {
      const attachments = [file('bad.txt', '%%%'), ...Array.from({ length: 11 }, (_, n) => file(`${n}.txt`))];
      expect((await send('/v1/webhooks/T', { body: apprise(attachments) })).status).toBe(200);
      expect(await newestText(server, group)).toBe('done\n\nbad.txt (not stored)\n10.txt (not stored)');
      expect(await newestFiles()).toEqual(Array.from({ length: 10 }, (_, n) => [`${n}.txt`, 3]));
    });

    test('is posted once under its key, with one copy of the files', async () => {
      const before = await storedFiles();
      const sent = { body: apprise([file('once.txt')]), headers: { 'idempotency-key': 'files' } };
      const [first, second] = [await send('/v1/webhooks/T', sent), await send('/v1/webhooks/T', sent)];
      expect([first.status, second.body]).toEqual([200, first.body]);
      expect(await storedFiles()).toBe(before + 1);
    });

    test('says which file there was no room for', async () => {
      const tight = await TestServer.start({ limits: { fileBytes: 2 } });
      try {
        const { webhook } = await tight.createGroup();
        const body = JSON.stringify(apprise([file('large.txt'), file('small.txt', 'YQ==')]));
        const answer = await fetch(webhook, { method: 'POST', body });
        expect(answer.status).toBe(200);
        const [row] = await tight.database.query((sql) => sql`select text, attachments from message`);
        expect(row).toMatchObject({ text: 'done\n\nlarge.txt (not stored)', attachments: [{ name: 'small.txt' }] });
      } finally {
        await tight.stop();
      }
    });
  });

  test('that is understood and not shown is answered as that, and nothing is posted', async () => {
    const before = (await storedMessages(server, group)).length;
    const body = { action: 'labeled', issue: { number: 1, title: 'x' }, repository: { full_name: 'a/b' } };
    const answer = await send('/v1/webhooks/T', { body, headers: { 'x-github-event': 'issues' } });
    expect([answer.status, JSON.parse(answer.body)]).toEqual([
      200,
      { status: 'Ok', ok: true, success: true, ignored: 'issues.labeled' },
    ]);
    expect((await storedMessages(server, group)).length).toBe(before);
  });
});

test('a card is answered by its kind where Teams is imitated, as its connectors and its workflows do', async () => {
  const content = { type: 'AdaptiveCard', body: [{ type: 'TextBlock', text: 'Deployed' }] };
  const attachments = [{ contentType: 'application/vnd.microsoft.card.adaptive', content }];
  for (const [body, status, told] of [
    [{ type: 'message', attachments }, 202, ''],
    [content, 202, ''],
    [{ type: 'message', attachments, padding: 'x'.repeat(300_000) }, 202, ''],
    [{ '@type': 'MessageCard', text: 'Deployed' }, 200, '1'],
  ] as const) {
    expect(await send('/v1/webhooks/T/teams', { body })).toMatchObject({ status, body: told });
    expect(await newestText(server, group)).toBe('Deployed');
  }
});

describe('a path of another product', () => {
  const ok = { ok: true, success: true };
  const chat = expect.objectContaining({ type: 'group' });
  test.each<[string, unknown, string, unknown]>([
    ['/v1/webhooks/T/slack', SLACK, SLACK_TEXT, 'ok'],
    ['/hooks/T', { text: 'a &lt; b' }, 'a < b', 'ok'],
    ['/hooks/any/T', { text: 'rocket', alias: 'Build' }, 'rocket', { success: true }],
    ['/v1/webhooks/T/discord', { content: 'from Discord' }, 'from Discord', ''],
    [
      '/api/webhooks/1/T?wait=true',
      { content: 'waits' },
      'waits',
      expect.objectContaining({ content: 'waits', type: 0 }),
    ],
    ['/api/v10/webhooks/1/T', { content: 'of version 10' }, 'of version 10', ''],
    ['/api/webhooks/1/T/slack', { text: 'of Slack' }, 'of Slack', 'ok'],
    [
      '/v1/webhooks/T/teams',
      { '@type': 'MessageCard', title: 'Deployed', text: 'to production' },
      'Deployed\nto production',
      '1',
    ],
    ['/v1/webhooks/T/teams', { title: 'Deployed', text: 'without a type' }, 'Deployed\nwithout a type', '1'],
    [
      '/message?token=T',
      { message: 'of Gotify', title: 'Title' },
      'Title\nof Gotify',
      expect.objectContaining({ message: 'Title\nof Gotify' }),
    ],
    [
      '/botT/sendMessage',
      { chat_id: 1, text: 'of a bot' },
      'of a bot',
      { ok: true, result: expect.objectContaining({ text: 'of a bot', chat }) },
    ],
    [
      '/bot100:T/sendMessage',
      { chat_id: 1, text: '<b>bold</b>', parse_mode: 'HTML' },
      'bold',
      { ok: true, result: expect.objectContaining({ chat }) },
    ],
    ['/api/v1/matrix/hook/T', { text: 'of a bridge' }, 'of a bridge', ok],
    ['/webhook/T', { text: 'of hookshot' }, 'of hookshot', ok],
    ['/notify/T', { title: 'Title', body: 'of apprise', type: 'info' }, 'Title\nof apprise', ok],
    ['/v1/webhooks/T/json', { a: { b: 1 } }, 'a.b: 1', OWN_ANSWER],
    ['/v1/webhooks/T/kuma', { heartbeat: null, monitor: null, msg: 'Testing' }, 'Testing', OWN_ANSWER],
  ])('%s posts, and answers as that product does', async (path, body, text, answered) => {
    const answer = await send(path, { body });
    expect(answer.status).toBe(answered === '' ? 204 : 200);
    expect(answer.type?.startsWith('application/json') === true ? JSON.parse(answer.body) : answer.body).toEqual(
      answered,
    );
    expect(await newestText(server, group)).toBe(text);
  });

  test('takes PUT as well', async () => {
    expect((await send('/hooks/T', { body: { text: 'put' }, method: 'PUT' })).status).toBe(200);
    expect(await newestText(server, group)).toBe('put');
  });

  test.each([
    ['/hooks/T', 404, 'no_service'],
    ['/hooks/any/T', 404, { success: false, error: 'Wrong integration token' }],
    ['/api/webhooks/1/T', 404, { code: 10_015, message: 'Wrong integration token' }],
    ['/message?token=T', 404, { error: 'invalid_token', errorCode: 404, errorDescription: 'Wrong integration token' }],
    ['/botT/sendMessage', 404, { ok: false, error_code: 404, description: 'Wrong integration token' }],
    ['/v1/webhooks/T/json', 404, { message: 'Wrong integration token', status: 'failure' }],
  ])('%s refuses an unknown token as that product does', async (path, status, expected) => {
    const answer = await send(path, { body: { text: 'x' } }, UNKNOWN_TOKEN);
    expect(answer.status).toBe(status);
    expect(typeof expected === 'string' ? answer.body : JSON.parse(answer.body)).toEqual(expected);
  });

  test.each([{ 'x-gotify-key': 'T' }, { authorization: 'Bearer T' }])(
    'takes the token of Gotify from %j',
    async (sent) => {
      const [[name, value]] = Object.entries(sent) as [[string, string]];
      const headers = { [name]: value.replace('T', group.token) };
      expect((await send('/message', { body: { message: 'by a header' }, headers })).status).toBe(200);
      expect(await newestText(server, group)).toBe('by a header');
    },
  );

  test('takes the token of ntfy from the topic of a post to the root', async () => {
    const answer = await send('/', { body: { topic: group.token, title: 'Backup', message: 'done' } });
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body)).toMatchObject({
      event: 'message',
      topic: String(group.id),
      message: 'Backup\ndone',
    });
    expect(answer.body).not.toContain(group.token);
    expect(await newestText(server, group)).toBe('Backup\ndone');
  });

  test.each([
    [{ topic: UNKNOWN_TOKEN, message: 'x' }, 404, 'Wrong integration token'],
    [{ topic: '../x', message: 'x' }, 404, 'Wrong integration token'],
  ])('refuses a post to the root as ntfy does: case %#', async (body, status, error) => {
    const answer = await send('/', { body });
    expect([answer.status, JSON.parse(answer.body)]).toEqual([status, { code: status * 100, http: status, error }]);
  });

  test.each([
    [{ message: 'x' }, 404],
    [{ topic: UNKNOWN_TOKEN, message: 'x'.repeat(17_000) }, 413],
  ])('takes no post to the root without a topic, and no long one: case %#', async (body, status) => {
    expect((await send('/', { body })).status).toBe(status);
  });

  test.each([
    ['/api/webhooks/1/T', 'content', 'file'],
    ['/api/webhooks/1/T', 'content', 'files[0]'],
    ['/api/webhooks/1/T', 'content', 'file1'],
    ['/bot100:T/sendDocument', 'caption', 'document'],
    ['/bot100:T/sendPhoto', 'caption', 'photo'],
  ])('%s takes a form with the text in %s and a file in %s', async (path, textField, fileField) => {
    const form = new FormData();
    form.set('chat_id', '1');
    form.set(textField, 'with a file');
    form.set(fileField, new Blob(['all is well']), 'report.txt');
    const answer = await fetch(server.url + path.replace('T', group.token), { method: 'POST', body: form });
    expect(answer.status).toBe(200);
    expect(await newestText(server, group)).toBe('with a file');
  });

  test('takes a file from the field that another one names, as libraries of Telegram do', async () => {
    const form = new FormData();
    form.set('chat_id', '1');
    form.set('caption', 'with a file');
    form.set('document', 'attach://k3j4');
    form.set('k3j4', new Blob(['all is well']), 'report.txt');
    const path = `/bot100:${group.token}/sendDocument`;
    expect((await fetch(server.url + path, { method: 'POST', body: form })).status).toBe(200);
    form.set('document', 'attach://other');
    expect((await fetch(server.url + path, { method: 'POST', body: form })).status).toBe(400);
  });

  test('refuses a body that says nothing', async () => {
    expect(await send('/hooks/T', { body: {} })).toMatchObject({ status: 400, body: 'invalid_payload' });
    expect(await send('/hooks/T', { body: '{' })).toMatchObject({ status: 400, body: 'invalid_payload' });
  });

  test.each(['/v1/webhooks/T/discord', '/api/webhooks/1/T', '/api/v10/webhooks/1/T'])(
    'GET %s tells of a webhook of Discord',
    async (path) => {
      const answer = await fetch(`${server.url}${path.replace('T', group.token)}`);
      const id = String(group.id);
      expect([answer.status, await answer.json()]).toEqual([
        200,
        { id, type: 1, name: `Klatch ${id}`, channel_id: id, avatar: null },
      ]);
      const unknown = await fetch(`${server.url}${path.replace('T', UNKNOWN_TOKEN)}`);
      expect([unknown.status, await unknown.json()]).toEqual([
        404,
        { code: 10_015, message: 'Wrong integration token' },
      ]);
    },
  );

  test.each(['GET', 'POST'])('%s getMe tells of a bot of Telegram, and posts nothing', async (method) => {
    const before = (await storedMessages(server, group)).length;
    const { id } = group;
    const result = { id, is_bot: true, first_name: `Klatch ${id}`, username: `klatch_${id}_bot` };
    for (const path of ['/botT/getMe', '/bot100:T/getMe']) {
      const answer = await fetch(`${server.url}${path.replace('T', group.token)}`, { method });
      expect([answer.status, await answer.json()]).toEqual([200, { ok: true, result }]);
    }
    const unknown = await fetch(`${server.url}/bot${UNKNOWN_TOKEN}/getMe`, { method });
    expect([unknown.status, await unknown.json()]).toEqual([
      404,
      { ok: false, error_code: 404, description: 'Wrong integration token' },
    ]);
    expect((await storedMessages(server, group)).length).toBe(before);
  });

  test('tells nothing of an archived group', async () => {
    const archived = await server.createGroup();
    await server.operate('groups.archive', { group: archived.id });
    expect((await fetch(`${server.url}/bot${archived.token}/getMe`)).status).toBe(410);
    expect((await fetch(`${server.url}/api/webhooks/1/${archived.token}`)).status).toBe(410);
  });

  test('allows no other method, and needs none of its own token', async () => {
    const answer = await request(server.port, { method: 'GET', path: `/hooks/${group.token}` });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST, PUT, OPTIONS']);
    const patched = await request(server.port, { method: 'PATCH', path: `/api/webhooks/1/${group.token}` });
    expect([patched.status, patched.headers.get('allow')]).toEqual([405, 'GET, POST, PUT, OPTIONS']);
  });
});

test('paths of other products are off with http.caller-paths = false; suffixes stay', async () => {
  const closed = await TestServer.start({ http: { callerPaths: false } });
  const { token } = await closed.createGroup();
  const post = (path: string): Promise<Response> =>
    fetch(`${closed.url}${path}`, { method: 'POST', body: JSON.stringify({ text: 'x' }) });
  expect((await post(`/hooks/${token}`)).status).toBe(404);
  expect((await post(`/v1/webhooks/${token}/slack`)).status).toBe(200);
  await closed.stop();
});
