import { randomBytes } from 'node:crypto';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { expectResponseHeaders, newestText, request, requestBytes, storedMessages, Wire } from '../http/wire.ts';
import { postJson, readJson, TestServer, type JsonAnswer, type TestGroup } from '../support/server.ts';

const MIB = 1024 * 1024;
const TOO_LARGE = { message: 'The body is larger than 1048576 bytes (http.max-body-size)' };

let server: TestServer;
let group: TestGroup;
beforeAll(async () => {
  server = await TestServer.start();
  group = await server.createGroup();
});
afterAll(() => server.stop());

async function post(body: string | Buffer, headers: Record<string, string> = {}): Promise<JsonAnswer> {
  const bytes = new Uint8Array(Buffer.from(body as string));
  return readJson(await fetch(group.webhook, { method: 'POST', headers, body: bytes }));
}

async function expectRefused(refusal: { status: number; body: unknown }, answer: JsonAnswer): Promise<void> {
  expect({ status: answer.status, body: answer.body }).toEqual(refusal);
  expectResponseHeaders(answer);
}

describe('the text', () => {
  test.each([
    ['ASCII', 'a'],
    ['emoji', '😀'],
    ['combining marks', '\u0301'],
  ])('may have 40,000 code points of %s and not one more', async (_, character) => {
    const full = character.repeat(40_000);
    expect((await postJson(group.webhook, { text: full })).status).toBe(200);
    expect(await newestText(server, group)).toBe(full);
    const message = 'text: has 40001 characters (code points), at most 40000 are allowed';
    await expectRefused({ status: 413, body: { message } }, await postJson(group.webhook, { text: `${full}a` }));
  });

  test('may be 40,000 emoji as the escapes that Python writes', async () => {
    // Python's json.dumps escapes everything beyond ASCII: 12 bytes for each emoji, 480 KB in total.
    const body = Buffer.from(`{"text": "${String.raw`\ud83d\ude00`.repeat(40_000)}"}`);
    expect(body.length).toBe(40_000 * 12 + 12);
    expect((await post(body, { 'content-type': 'application/json' })).status).toBe(200);
    expect(await newestText(server, group)).toBe('😀'.repeat(40_000));
  });

  test.each([
    ['nothing', ''],
    ['spaces, tabs and line breaks', ' \t\r\n\v\f'],
    ['Unicode white space', '\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\u0085'],
    ['a byte order mark', '\ufeff'],
  ])('must not be only white space: %s', async (_, text) => {
    const message = 'text: must hold something other than white space';
    await expectRefused({ status: 400, body: { message } }, await postJson(group.webhook, { text }));
  });

  test.each(['"a\\u0000b"', '"\\u0000"'])('must not hold NUL: %s', async (text) => {
    const message = 'text: must not hold the character NUL';
    await expectRefused(
      { status: 400, body: { message } },
      await post(`{"text":${text}}`, { 'content-type': 'application/json' }),
    );
    await expectRefused({ status: 400, body: { message } }, await post('a\0b', { 'content-type': 'text/plain' }));
  });

  test.each(['\\ud83d', 'a\\ude00b', '\\ude00\\ud83d'])('must not hold half a surrogate pair: %s', async (escape) => {
    const message = 'text: is not valid Unicode (it holds half of a surrogate pair)';
    const answer = await post(`{"text":"x${escape}"}`, { 'content-type': 'application/json' });
    await expectRefused({ status: 400, body: { message } }, answer);
  });

  test.each(['\u0001', '\u001b[31mred\u001b[0m', '\u200b', '\u{10ffff}', '\ufffd', '\u202e'])(
    'may hold any other character: %j',
    async (text) => {
      expect((await postJson(group.webhook, { text })).status).toBe(200);
      expect(await newestText(server, group)).toBe(text);
    },
  );
});

describe('username and icon_url', () => {
  test('are stored beside the message', async () => {
    const username = '😀'.repeat(80);
    const icon = 'HTTPS://example.org:8443/i.png?size=64#x';
    expect((await postJson(group.webhook, { text: 'x', username, icon_url: icon })).status).toBe(200);
    const message = (await storedMessages(server, group)).at(-1);
    expect(message).toMatchObject({ label: username, icon_url: icon });
  });

  test.each([{ username: null }, { username: '' }, { icon_url: null }, { icon_url: '' }])(
    'may be absent: %j',
    async (fields) => {
      expect((await postJson(group.webhook, { text: 'x', ...fields })).status).toBe(200);
      expect((await storedMessages(server, group)).at(-1)).toMatchObject({ label: null, icon_url: null });
    },
  );

  test.each<[unknown, string | null]>([
    ['a'.repeat(81), 'a'.repeat(80)],
    ['😀'.repeat(81), '😀'.repeat(80)],
    ['a'.repeat(100_000), 'a'.repeat(80)],
    ['a\nb', 'ab'],
    ['\u0000', null],
    ['CI\u009f\u001b[31m', 'CI[31m'],
    ['\u202egnp.exe', 'gnp.exe'],
    ['a\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\ufeffb', 'ab'],
    ['half \ud83d', 'half'],
    [' \u2028 ', null],
    ['می\u200cخواهم 👩‍💻', 'می\u200cخواهم 👩‍💻'],
    [42, null],
    [['a'], null],
    [{ a: 1 }, null],
  ])('a username (%#) is never a reason to refuse: it is cleaned, or left out', async (username, label) => {
    expect((await postJson(group.webhook, { text: 'x', username })).status).toBe(200);
    expect((await storedMessages(server, group)).at(-1)).toMatchObject({ text: 'x', label });
  });

  test.each([
    'javascript:alert(1)',
    ' javascript:alert(1)',
    'JaVaScRiPt:alert(1)//http://a',
    'data:text/html,x',
    'file:///etc/passwd',
    '//example.org/i.png',
    'not even a URL',
    'https://',
    'https://a b/',
    'https:\\\\example.org',
    'https://example.org/\u202egnp.js',
    'https://example.org/\u0000',
    `https://example.org/${'a'.repeat(2_048)}`,
    {},
    7,
  ])('an icon_url (%#) that is no address is left out', async (icon) => {
    expect((await postJson(group.webhook, { text: 'x', username: 'CI', icon_url: icon })).status).toBe(200);
    expect((await storedMessages(server, group)).at(-1)).toMatchObject({ label: 'CI', icon_url: null });
  });
});

describe('the body', () => {
  const incompressible = (length: number): string => randomBytes(length).toString('base64').slice(0, length);
  const filled = (bytes: number): string => `{"text":"fits","x":"${'a'.repeat(bytes - 22)}"}`;

  test('may have exactly 1 MiB', async () => {
    expect(filled(MIB)).toHaveLength(MIB);
    expect((await post(filled(MIB), { 'content-type': 'application/json' })).status).toBe(200);
  });

  test('is refused with 413 at one byte more', async () => {
    await expectRefused({ status: 413, body: TOO_LARGE }, await post(filled(MIB + 1)));
  });

  test('is refused by its Content-Length before it is sent', async () => {
    const headers = { 'content-length': String(10 * 1024 * MIB) };
    const answer = await request(server.port, { path: `/v1/webhooks/${group.token}`, headers });
    expect([answer.status, answer.body]).toEqual([413, TOO_LARGE]);
    expectResponseHeaders(answer);
  });

  test('is refused as soon as its chunks have passed the bound', async () => {
    const wire = await Wire.open(server.port);
    const headers = { 'transfer-encoding': 'chunked' };
    wire.write(requestBytes({ path: `/v1/webhooks/${group.token}`, headers }));
    for (let sent = 0; sent < 17; sent += 1) wire.write(`10000\r\n${'a'.repeat(65_536)}\r\n`);
    // The last chunk never arrives, and the answer does not wait for it.
    const answer = await wire.response();
    expect([answer.status, answer.body]).toEqual([413, TOO_LARGE]);
    wire.close();
  });

  test.each([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['GZIP', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['identity', (text: string): Buffer => Buffer.from(text)],
  ])('may be compressed with %s', async (encoding, compress) => {
    const text = `compressed with ${encoding}`;
    const answer = await post(compress(JSON.stringify({ text })), { 'content-encoding': encoding });
    expect(answer.status).toBe(200);
    expect(await newestText(server, group)).toBe(text);
  });

  test('may inflate to exactly 1 MiB', async () => {
    const headers = { 'content-encoding': 'gzip', 'content-type': 'application/json' };
    const body = filled(MIB).replace('a'.repeat(600_000), () => incompressible(600_000));
    expect(body).toHaveLength(MIB);
    expect((await post(gzipSync(body), headers)).status).toBe(200);
  });

  test.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
  ])('is refused with 413 when it inflates beyond 1 MiB (%s)', async (encoding, compress) => {
    const large = compress(`${incompressible(MIB / 2)}${'a'.repeat(MIB)}`);
    expect(large.length).toBeLessThan(MIB);
    await expectRefused({ status: 413, body: TOO_LARGE }, await post(large, { 'content-encoding': encoding }));
  });

  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ])('is refused with 413 when it expands more than fifty times (%s)', async (encoding, compress) => {
    const bomb = compress(filled(MIB));
    const answer = await post(bomb, { 'content-encoding': encoding, 'content-type': 'application/json' });
    const most = Math.max(65_536, bomb.length * 50);
    const message = `The body expands from ${bomb.length} bytes to more than ${most}: send it uncompressed`;
    await expectRefused({ status: 413, body: { message } }, answer);
  });

  test.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
  ])('may expand to 64 KiB however far that is (%s)', async (encoding, compress) => {
    const answer = await post(compress(filled(65_536)), { 'content-encoding': encoding });
    expect(answer.status).toBe(200);
  });

  test('of 1 MiB is read whatever it is made of, or refused in words', async () => {
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    expect((await post(`text=short&${'a&'.repeat(500_000)}`, form)).status).toBe(200);
    expect(await newestText(server, group)).toBe('short');
    const part = '--B\r\ncontent-disposition: form-data; name="a"\r\n\r\n\r\n';
    const parts = { 'content-type': 'multipart/form-data; boundary=B' };
    const message = 'The form has more than 200 parts';
    await expectRefused({ status: 400, body: { message } }, await post(`${part.repeat(15_000)}--B--\r\n`, parts));
    const raw = await post(`{"text":"${'\n'.repeat(MIB - 20)}"}`, {
      'content-type': 'application/json',
    });
    await expectRefused({ status: 400, body: { message: 'The body is not valid JSON at line 1, column 10' } }, raw);
  });

  test.each([
    ['cut', gzipSync('{"text":"x"}').subarray(0, 20)],
    ['not gzip', Buffer.from('{"text":"x"}')],
    ['empty', Buffer.alloc(0)],
  ])('is refused when it is not the gzip that it claims to be (%s)', async (_, body) => {
    const message = 'The body is not what its Content-Encoding says: compress it so, or send it without that header';
    await expectRefused({ status: 400, body: { message } }, await post(body, { 'content-encoding': 'gzip' }));
  });

  test.each(['zstd', 'gzip, gzip', 'nonsense'])('is refused with 415 with Content-Encoding %s', async (encoding) => {
    const message = 'The Content-Encoding is not supported: use gzip, deflate, br or none';
    await expectRefused({ status: 415, body: { message } }, await post('x', { 'content-encoding': encoding }));
  });

  test('that the client breaks off posts nothing', async () => {
    const before = (await storedMessages(server, group)).length;
    const wire = await Wire.open(server.port);
    const headers = { 'content-length': '100', 'content-type': 'text/plain' };
    wire.write(requestBytes({ path: `/v1/webhooks/${group.token}`, headers, body: 'only the begin' }));
    wire.end();
    const answer = await wire.response();
    expect(answer.status).toBe(400);
    expectResponseHeaders(answer);
    await wire.ended();
    expect((await storedMessages(server, group)).length).toBe(before);
  });
});
