import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  ANYBODY_OPERATION_LIMITS,
  FRAME_LIMITS,
  limitsOf,
  MESSAGE_OPERATION_LIMITS,
  SIGNED_IN_OPERATION_LIMITS,
} from '../../src/operations/core/input-limits.ts';
import { operationTable } from '../../src/operations/table.ts';
import { createPerson, type TestPerson } from '../support/people.ts';
import { TestServer, type TestGroup } from '../support/server.ts';
import { expectResponseHeaders, request, storedMessages, type WireResponse } from './wire.ts';

const MIB = 1024 * 1024;
const JSON_TYPE = { 'content-type': 'application/json' };

let server: TestServer;
let group: TestGroup;
let person: TestPerson;
beforeAll(async () => {
  server = await TestServer.start({
    http: { trustedProxies: ['127.0.0.1'] },
    limits: {
      hookRegistrationsPerGroupPerMinute: 1_000,
      hookChangesPerGroupPerMinute: 1_000,
      sourceParseMsPerSecond: 250,
    },
  });
  group = await server.createGroup();
  person = await createPerson(server, 'anna', { admin: true });
});
afterAll(() => server.stop());

let sources = 0;
/** Sends a request from a network of its own: no test here is about the limit of one network. */
function sendRequest(
  path: string,
  body: string | Buffer,
  headers: Record<string, string> = JSON_TYPE,
): Promise<WireResponse> {
  sources += 1;
  const from = { 'x-forwarded-for': `10.0.${sources >> 8}.${sources & 255}` };
  return request(server.port, { path, body, headers: { ...from, ...headers } });
}

const post = (body: string | Buffer, headers?: Record<string, string>): Promise<WireResponse> =>
  sendRequest(`/v1/webhooks/${group.token}`, body, headers);

function expectError(response: WireResponse, status: number, message: string | RegExp): void {
  expect([response.status, response.body.message]).toEqual([status, expect.stringMatching(message)]);
  expectResponseHeaders(response);
}

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const keys = (count: number): string => Array.from({ length: count }, (_, n) => `"k${n}":1`).join();
const values = (count: number): string => Array.from({ length: count }, () => '1').join();

/** A push event as GitHub documents it, with as many commits as one event can have. */
function githubPush(commits: number): string {
  const person = { name: 'Anna', email: 'anna@example.com', username: 'anna' };
  const commit = (): object => {
    const id = randomBytes(20).toString('hex');
    const url = `https://github.com/o/r/commit/${id}`;
    const files = { added: [], removed: [], modified: ['a.c'] };
    const timestamp = '2026-11-22T22:36:01Z';
    return {
      id,
      tree_id: id,
      distinct: true,
      message: 'm',
      timestamp,
      url,
      author: person,
      committer: person,
      ...files,
    };
  };
  return JSON.stringify({ text: 'pushed', ref: 'refs/heads/main', commits: Array.from({ length: commits }, commit) });
}

describe('a post', () => {
  test('may be a push of 2,048 commits, which holds more than 25,000 values', async () => {
    const push = githubPush(2_048);
    expect(push.length).toBeLessThan(MIB);
    expect(push.match(/[,[{]/g)!.length).toBeGreaterThan(25_000);
    expect((await post(push)).status).toBe(200);
    expect((await post(gzipSync(push), { ...JSON_TYPE, 'content-encoding': 'gzip' })).status).toBe(200);
  });

  test.each<[string, string, string]>([
    ['nested 524,000 deep', `{"text":"x","a":${nested(524_000)}}`, 'The body is nested deeper than 64 levels'],
    ['nested 65 deep', `{"text":"x","a":${nested(64)}}`, 'The body is nested deeper than 64 levels'],
    ['of 24,000 keys', `{"text":"x",${keys(24_000)}}`, 'The body holds more than 2000 different keys'],
    ['of 500,000 values', `{"text":"x","a":[${values(500_000)}]}`, 'The body holds more than 60000 values'],
  ])('%s is refused, whatever its type', async (_, body, message) => {
    const before = (await storedMessages(server, group)).length;
    for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded']) {
      expectError(await post(body, { 'content-type': type }), 400, message);
    }
    const multipart = { 'content-type': 'multipart/form-data; boundary=B' };
    const payload = message.replace('The body', 'payload:');
    const part = `--B\r\ncontent-disposition: form-data; name="payload"\r\n\r\n${body}\r\n--B--\r\n`;
    if (part.length <= MIB) expectError(await post(part, multipart), 400, payload);
    const field = `payload=${body.replaceAll('"', '%22').slice(0, MIB - 8)}`;
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    expectError(await post(field, form), 400, payload);
    expect(await storedMessages(server, group)).toHaveLength(before);
  });

  test('of a kilobyte that expands to a megabyte is refused', async () => {
    const bomb = gzipSync(`{"text":"x","a":${nested(524_000)}}`, { level: 9 });
    expect(bomb.length).toBeLessThan(1_100);
    const response = await post(bomb, { ...JSON_TYPE, 'content-encoding': 'gzip' });
    expectError(response, 413, /^The body expands from \d+ bytes to more than 65536: send it uncompressed$/);
  });

  test('that only begins like an object is text, however many brackets it has', async () => {
    const text = `{${'{'.repeat(1_000)} template }`;
    expect((await post(text, { 'content-type': 'text/plain' })).status).toBe(200);
    expect((await storedMessages(server, group)).at(-1)?.text).toBe(text);
  });

  test('is decoded as a form is, however it is escaped', async () => {
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    expect((await post('text=a+b%2Bc%20%e4%bd%A0%zz%4&x=1', form)).status).toBe(200);
    expect((await storedMessages(server, group)).at(-1)?.text).toBe('a b+c 你%zz%4');
  });
});

describe('a multipart form', () => {
  const parts = (boundary: string, count: number): string =>
    `--${boundary}\r\ncontent-disposition: form-data; name="a"\r\n\r\n\r\n`.repeat(count);

  test.each([
    ['a quoted boundary with an escape', String.raw`multipart/form-data; boundary="\x"`, 'x'],
    ['another parameter that holds one', 'multipart/form-data; a="; boundary=zzz"; boundary=x', 'x'],
    ['a boundary in capitals', 'multipart/form-data; BOUNDARY=x', 'x'],
    ['two boundaries', 'multipart/form-data; boundary=x; boundary=zzz', 'x'],
    ['two boundaries', 'multipart/form-data; boundary=zzz; boundary=x', 'x'],
  ])('with %s has at most 200 parts', async (_, type, boundary) => {
    const response = await post(`${parts(boundary, 17_000)}--${boundary}--\r\n`, { 'content-type': type });
    // Either refusal is right, as long as the limit applies to the form that is read.
    expectError(response, 400, /^The form has more than 200 parts$|^The body is not a valid multipart form$/);
    const packed = gzipSync(`${parts(boundary, 1_000)}--${boundary}--\r\n`);
    const small = await post(packed, { 'content-type': type, 'content-encoding': 'gzip' });
    expectError(small, 400, /^The form has more than 200 parts$|^The body is not a valid multipart form$/);
  });

  test('with 200 parts is read', async () => {
    const text = '--B\r\ncontent-disposition: form-data; name="text"\r\n\r\nlast of many\r\n';
    const type = { 'content-type': 'multipart/form-data; boundary=B' };
    expect((await post(`${parts('B', 199)}${text}--B--\r\n`, type)).status).toBe(200);
    expect((await storedMessages(server, group)).at(-1)?.text).toBe('last of many');
  });
});

describe('a request about reverse webhooks', () => {
  const routes = async (): Promise<[string, string][]> => {
    const url = `http://127.0.0.1:9/${sources}`;
    const made = await sendRequest(`/v1/webhooks/${group.token}/reverse`, JSON.stringify({ url }));
    const hook = `/v1/webhooks/${group.token}/reverse/${made.body.id}`;
    return [
      ['POST', `/v1/webhooks/${group.token}/reverse`],
      ['PATCH', hook],
      ['POST', `${hook}/redeliver`],
    ];
  };

  test('is refused before it is parsed when it is deep, or holds many keys or values', async () => {
    for (const [method, path] of await routes()) {
      for (const [body, message] of [
        [`{"url":${nested(500_000)}}`, 'The body is nested deeper than 8 levels'],
        [`{"url":1,${keys(600)}}`, 'The body holds more than 500'],
        [`{"only":[${values(501)}]}`, 'The body holds more than 500 values'],
      ] as const) {
        const response = await request(server.port, { method, path, body, headers: JSON_TYPE });
        expectError(response, 400, message);
      }
      const headers = { ...JSON_TYPE, 'content-encoding': 'gzip' };
      const bomb = gzipSync(`{"url":"${'a'.repeat(MIB - 20)}"}`);
      expectError(await request(server.port, { method, path, body: bomb, headers }), 413, 'The body expands from');
    }
  });

  test('past the registrations of a minute is not parsed', async () => {
    const limited = await TestServer.start({ limits: { hookRegistrationsPerGroupPerMinute: 1 } });
    try {
      const { token } = await limited.createGroup();
      const register = (body: string): Promise<WireResponse> =>
        request(limited.port, { path: `/v1/webhooks/${token}/reverse`, body, headers: JSON_TYPE });
      expect((await register('{')).status).toBe(400);
      const response = await register('{');
      expectError(response, 503, 'A group takes 1 registrations a minute');
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
    } finally {
      await limited.stop();
    }
  });
});

describe('an operation', () => {
  const served = [...operationTable().values()].filter(({ who }) => who !== 'system');
  const open = served.filter(({ who }) => who === 'anybody');

  test('takes more than others only where it has to', () => {
    expect(open.map((operation) => limitsOf(operation))).toEqual(open.map(() => ANYBODY_OPERATION_LIMITS));
    const large = served.filter(
      (operation) => limitsOf(operation) !== SIGNED_IN_OPERATION_LIMITS && operation.who !== 'anybody',
    );
    expect(Object.fromEntries(large.map((each) => [each.name, limitsOf(each)]))).toEqual({
      'messages.send': MESSAGE_OPERATION_LIMITS,
      'messages.edit': MESSAGE_OPERATION_LIMITS,
      'live.subscribe': expect.objectContaining(FRAME_LIMITS),
    });
  });

  test.each(open)('for anybody takes 16 KiB of 50 values that are not compressed: $name', async ({ name }) => {
    const path = `/v1/api/${name}`;
    expectError(await sendRequest(path, `{"x":"${'x'.repeat(16_384)}"}`), 413, /larger than 16384 bytes/);
    expectError(await sendRequest(path, `{"x":[${values(50)}]}`), 400, 'input: holds more than 50 values');
    expectError(await sendRequest(path, `{${keys(51)}}`), 400, 'input: holds more than 50');
    expectError(await sendRequest(path, `{"x":${nested(8)}}`), 400, 'input: is nested deeper than 8 levels');
    const packed = await sendRequest(path, gzipSync('{}'), { ...JSON_TYPE, 'content-encoding': 'gzip' });
    expectError(packed, 415, 'Send this body without a Content-Encoding');
  });

  test.each(served.filter((operation) => limitsOf(operation).maxValues === SIGNED_IN_OPERATION_LIMITS.maxValues))(
    'with a session takes 500 values: $name',
    async ({ name }) => {
      const headers = { ...JSON_TYPE, authorization: `Bearer ${person.token}` };
      expectError(await sendRequest(`/v1/api/${name}`, `{${keys(501)}}`, headers), 400, 'input: holds more than 500');
      expectError(
        await sendRequest(`/v1/api/${name}`, `{"x":${nested(8)}}`, headers),
        400,
        'nested deeper than 8 levels',
      );
    },
  );

  test('that is compressed may expand fifty times', async () => {
    const headers = { ...JSON_TYPE, authorization: `Bearer ${person.token}`, 'content-encoding': 'gzip' };
    const bomb = gzipSync(`{"conversation":1,"text":"${'a'.repeat(500_000)}"}`);
    expectError(await sendRequest('/v1/api/messages.send', bomb, headers), 413, 'The body expands from');
    expect((await sendRequest('/v1/api/profile.show', gzipSync('{}'), headers)).status).toBe(200);
  });
});

describe('a source that has used up its time', () => {
  const costly = `{"text":"x","a":[${Array.from({ length: 25_000 }, () => '{}').join()}]}`;
  const from = (source: string): Record<string, string> => ({ ...JSON_TYPE, 'x-forwarded-for': source });

  /**
   * Sends requests until the server refuses one: together they take more than a quarter of the server's time, however
   * fast it is.
   */
  async function exhaust(send: () => Promise<WireResponse>, status: number): Promise<WireResponse> {
    for (;;) {
      const responses = await Promise.all(Array.from({ length: 50 }, send));
      const refused = responses.find((response) => response.status === status);
      if (refused !== undefined) return refused;
    }
  }

  test('is refused below /v1/webhooks with 503 and when to repeat it, and no other source is', async () => {
    const path = `/v1/webhooks/${group.token}`;
    const refused = await exhaust(() => sendRequest(path, costly, from('192.0.2.1')), 503);
    expectError(refused, 503, 'Requests from your network take too much of the time of the server');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await sendRequest(path, '{"text":"another source"}', from('192.0.2.2'))).status).toBe(200);
  });

  test('is one /64 of IPv6', async () => {
    const path = `/v1/webhooks/${group.token}`;
    let host = 0;
    const refused = await exhaust(
      () => sendRequest(path, costly, from(`2001:db8:1:2::${(host += 1).toString(16)}`)),
      503,
    );
    expectError(refused, 503, 'Requests from your network');
    expect((await sendRequest(path, '{"text":"another network"}', from('2001:db8:1:3::1'))).status).toBe(200);
  });

  test('is refused by the operations with 429', async () => {
    const headers = { ...from('192.0.2.3'), authorization: `Bearer ${person.token}` };
    const body = `{"x":"${'é'.repeat(30_000)}",${keys(400)}}`;
    const refused = await exhaust(() => sendRequest('/v1/api/profile.update', body, headers), 429);
    expect([refused.status, refused.body.code]).toEqual([429, 'rate_limited']);
  });
});
