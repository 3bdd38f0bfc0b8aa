import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { text as readText } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Attachment } from '../../src/model/attachment.ts';
import { newestText, storedMessages } from '../http/wire.ts';
import { callAs } from '../support/call.ts';
import { eventually } from '../support/eventually.ts';
import { createPerson, type TestPerson } from '../support/people.ts';
import { postJson, readJson, TestServer, type JsonAnswer, type TestGroup } from '../support/server.ts';

const MAX_FILE = 300_000;

let server: TestServer;
let group: TestGroup;
let alice: TestPerson;

beforeAll(async () => {
  server = await TestServer.start({
    limits: {
      fileBytes: MAX_FILE,
      attachmentsPerMessage: 3,
      postsPerSecondPerToken: 10_000,
      concurrentUploadsPerUser: 3,
    },
    http: { maxBodyBytes: 20_000 },
  });
  group = await server.createGroup('Ops');
  alice = await createPerson(server, 'alice');
  await server.operate('groups.add-member', { group: group.id, user: 'alice' });
});
afterAll(() => server.stop());

type Field = readonly [name: string, value: string | { name: string; content: string | Buffer; type?: string }];

function form(fields: readonly Field[]): FormData {
  const data = new FormData();
  for (const [name, value] of fields) {
    if (typeof value === 'string') data.append(name, value);
    else data.append(name, new Blob([value.content], { type: value.type ?? '' }), value.name);
  }
  return data;
}

const post = async (
  fields: readonly Field[],
  headers: Record<string, string> = {},
  url = group.webhook,
): Promise<JsonAnswer> => readJson(await fetch(url, { method: 'POST', body: form(fields), headers }));

const file = (content: string | Buffer, name = 'report.txt'): Field => ['file', { name, content }];

/** The newest message as a member sees it. */
async function newest(): Promise<{ seq: number; text: string; label?: string; attachments: Attachment[] }> {
  const { messages } = await callAs(server, alice, 'messages.history', { conversation: group.id, limit: 1 });
  return messages[0];
}

const content = async ({ id }: Attachment): Promise<string> => {
  const response = await fetch(`${server.url}/v1/files/${id}`, { headers: { authorization: `Bearer ${alice.token}` } });
  expect(response.status).toBe(200);
  return response.text();
};

const messages = async (): Promise<number> => (await storedMessages(server, group)).length;

/** The number of files that belong to no message, in any state. */
const loose = (): Promise<number> =>
  server.database.query(async (sql) => {
    const [row] = await sql<{ count: number }[]>`select count(*)::int as count from file where seq is null`;
    return row!.count;
  });

/** Checks that no message was posted, and that no file remained. */
async function expectNothing(before: number): Promise<void> {
  expect(await messages()).toBe(before);
  expect(await eventually(loose, (count) => count === 0)).toBe(0);
}

describe('a form with files', () => {
  test('is a message of the integration that carries them', async () => {
    const answer = await post([['text', 'the report'], file('hello'), ['username', 'Build bot']]);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ status: 'Ok', ok: true, success: true });
    const message = await newest();
    expect(answer.body.id).toBe(`${group.id}:${message.seq}`);
    expect(message).toMatchObject({ text: 'the report', label: 'Build bot' });
    expect(message.attachments).toEqual([
      { id: expect.any(String), name: 'report.txt', type: expect.any(String), size: 5 },
    ]);
    expect(await content(message.attachments[0]!)).toBe('hello');
  });

  test('needs no text, and takes it from behind the files or out of a payload', async () => {
    expect((await post([file('one'), file('two', 'b.txt')])).status).toBe(200);
    expect(await newest()).toMatchObject({ text: '', attachments: [{ name: 'report.txt' }, { name: 'b.txt' }] });
    expect((await post([file('x'), ['text', 'behind']])).status).toBe(200);
    expect(await newest()).toMatchObject({ text: 'behind', attachments: [{ size: 1 }] });
    expect((await post([['payload', '{"text":"of a payload"}'], file('x')])).status).toBe(200);
    expect((await newest()).text).toBe('of a payload');
    expect((await post([['payload', '{"username":"only"}'], file('x'), ['text', '  ']])).status).toBe(200);
    expect(await newest()).toMatchObject({ text: '', label: 'only' });
  });

  test('in which none was chosen, as browsers send it, is a form without files', async () => {
    const none: Field = ['file', { name: '', content: '' }];
    expect((await post([['text', 'only text'], none])).status).toBe(200);
    expect(await newest()).toMatchObject({ text: 'only text', attachments: [] });
    const before = await messages();
    const message = 'text: is required (a form needs the field text, or payload with JSON)';
    expect(await post([none])).toMatchObject({ status: 400, body: { message } });
    expect((await post([['text', ' '], none])).status).toBe(400);
    expect((await post([['payload', '{}'], none])).body.message).toBe(
      'text: is required; with /json behind its address any JSON can be posted',
    );
    await expectNothing(before);
  });

  test('is larger than a body without files may be, and no larger than files may', async () => {
    const large = randomBytes(MAX_FILE / 2).toString('hex');
    expect((await post([file(large), ['text', 'large']])).status).toBe(200);
    expect(await content((await newest()).attachments[0]!)).toBe(large);
    const before = await messages();
    const answer = await post([file('small'), file(`${large}x`)]);
    expect(answer).toMatchObject({ status: 413, body: { message: expect.stringMatching(/limits\.file-size/) } });
    await expectNothing(before);
  });

  test.each<[string, Field[], number, RegExp]>([
    ['too many files', Array.from({ length: 4 }, () => file('x')), 400, /limits\.attachments-per-message/],
    ['a file in a field of another name', [['upload', { name: 'a', content: 'x' }]], 400, /"file"/],
    ['its text as a file', [['text', { name: 'a', content: 'x' }]], 400, /with curl it is -F 'text=<name'/],
    ['a text that is too long', [file('x'), ['text', 'x'.repeat(40_001)]], 413, /http\.max-body-size/],
    ['a broken payload', [file('x'), ['payload', '{']], 400, /payload: must be a JSON object/],
  ])('with %s is refused, and nothing of it stays', async (_what, fields, status, sentence) => {
    const before = await messages();
    expect(await post(fields)).toMatchObject({ status, body: { message: expect.stringMatching(sentence) } });
    await expectNothing(before);
  });

  test.each<[string, Record<string, string>, number]>([
    ['a key that is none', { 'idempotency-key': 'a b' }, 400],
    ['hops that are no number', { 'klatch-hops': 'x' }, 400],
    ['too many hops', { 'klatch-hops': '3' }, 508],
  ])('with %s is refused before anything is stored', async (_what, headers, status) => {
    const before = await messages();
    expect((await post([file('x'.repeat(100_000))], headers)).status).toBe(status);
    await expectNothing(before);
  });

  test('is refused with a token that is none, and in an archived group', async () => {
    const wrong = `${server.url}/v1/webhooks/${'x'.repeat(40)}`;
    expect(await post([file('x')], {}, wrong)).toMatchObject({
      status: 404,
      body: { message: 'Wrong integration token', status: 'failure' },
    });
    const closed = await server.createGroup('Closed');
    await postJson(closed.webhook, { text: 'remembered' });
    await server.database.query(
      (sql) => sql`update conversation_head set archived_at = now() where conversation_id = ${closed.id}`,
    );
    // The server's cache shows the group as not archived. Only the statement that writes the message finds out, after
    // the file was stored.
    expect(await post([file('x')], {}, closed.webhook)).toMatchObject({
      status: 410,
      body: { message: 'This group is archived' },
    });
    await expectNothing(await messages());
  });

  test('and a token that was rotated meanwhile is refused, and nothing of it stays', async () => {
    const other = await server.createGroup('Rotating');
    await postJson(other.webhook, { text: 'remembered' });
    await server.database.query(
      (sql) => sql`update integration set token_hash = 'other' where conversation_id = ${other.id}`,
    );
    expect((await post([file('x')], {}, other.webhook)).status).toBe(404);
    await expectNothing(await messages());
  });
});

describe('an Idempotency-Key', () => {
  test('gives the first answer again for the same form, whatever its boundary, and keeps no second copy', async () => {
    const fields: Field[] = [['text', 'once'], file('content')];
    const headers = { 'idempotency-key': 'report-1' };
    const first = await post(fields, headers);
    const second = await post(fields, headers);
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(second.body).toEqual(first.body);
    await expectNothing(await messages());
    expect(await content((await newest()).attachments[0]!)).toBe('content');
  });

  test.each<[string, Field[]]>([
    ['another text', [['text', 'other'], file('content')]],
    ['other bytes', [['text', 'once'], file('Content')]],
    ['another name', [['text', 'once'], file('content', 'other.txt')]],
    ['one file more', [['text', 'once'], file('content'), file('more')]],
    ['no file', [['text', 'once']]],
  ])('with %s is a 422, and nothing of it stays', async (_what, fields) => {
    const headers = { 'idempotency-key': 'report-2' };
    await post([['text', 'once'], file('content')], headers);
    const before = await messages();
    expect((await post(fields, headers)).status).toBe(422);
    await expectNothing(before);
  });

  test('of a form that was refused is free for the next one', async () => {
    const headers = { 'idempotency-key': 'report-3' };
    expect((await post([file('x'), ['payload', '{']], headers)).status).toBe(400);
    expect((await post([file('x'), ['username', 'ok']], headers)).status).toBe(200);
  });

  test('of two at once posts one of them', async () => {
    const headers = { 'idempotency-key': 'report-4' };
    const before = await messages();
    const answers = await Promise.all([1, 2, 3].map(() => post([file('same')], headers)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
    await expectNothing(before + 1);
  });
});

const withCurl = spawnSync('curl', ['--version']).status === 0 ? describe : describe.skip;

withCurl('curl', () => {
  /** Runs the real curl; resolves to the status and the body. */
  async function curl(...args: string[]): Promise<{ status: number; body: string }> {
    const child = spawn('curl', ['-sS', '-w', '\n%{http_code}', ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin.end('from a pipe');
    const lines = (await readText(child.stdout)).split('\n');
    return { status: Number(lines.pop()), body: lines.join('\n') };
  }

  test('-F text=… -F file=@… posts both', async () => {
    expect((await curl('-F', 'text=see there', '-F', 'file=@package.json', group.webhook)).status).toBe(200);
    const message = await newest();
    expect(message).toMatchObject({ text: 'see there', attachments: [{ name: 'package.json' }] });
    expect(JSON.parse(await content(message.attachments[0]!))).toMatchObject({ name: 'klatch' });
  });

  test('-F file=@- takes what is piped, and a name that is given, chunked or not', async () => {
    const args = [
      '-F',
      'file=@-;filename=uptime.txt',
      '-H',
      'Transfer-Encoding: chunked',
      '-H',
      'Expect: 100-continue',
    ];
    expect((await curl(...args, group.webhook)).status).toBe(200);
    const message = await newest();
    expect(message).toMatchObject({ text: '', attachments: [{ name: 'uptime.txt', size: 11 }] });
    expect(await newestText(server, group)).toBe('');
  });

  test('-F text=@… is told what it meant', async () => {
    const answer = await curl('-F', 'text=@package.json', group.webhook);
    expect(answer.status).toBe(400);
    expect(answer.body).toContain("-F 'text=<name'");
  });
});
