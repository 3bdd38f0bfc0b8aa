import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { expectResponseHeaders, newestText, request, storedMessages } from '../http/wire.ts';
import { within } from '../run/machine-speed.ts';
import { postJson, readJson, TestServer, type JsonAnswer, type TestGroup } from '../support/server.ts';

let server: TestServer;
let group: TestGroup;
beforeAll(async () => {
  server = await TestServer.start();
  group = await server.createGroup();
});
afterAll(() => server.stop());

async function post(body: string | Uint8Array<ArrayBuffer>, contentType: string | null): Promise<JsonAnswer> {
  const headers: Record<string, string> = contentType === null ? {} : { 'content-type': contentType };
  // The body is a Uint8Array, because fetch gives a string a Content-Type.
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  return readJson(await fetch(group.webhook, { method: 'POST', headers, body: bytes }));
}

/** Posts a body. Expects the answer 200, and that the message is stored as `text`. */
async function expectPosted(
  text: string,
  body: string | Uint8Array<ArrayBuffer>,
  contentType: string | null,
): Promise<void> {
  const answer = await post(body, contentType);
  expect({ status: answer.status, body: answer.body }).toMatchObject({ status: 200, body: { status: 'Ok' } });
  expect(await newestText(server, group)).toBe(text);
}

/** Posts a body. Expects an error with exactly this sentence, and no stored message. */
async function expectRefused(
  refusal: { status: number; message: string },
  body: string | Uint8Array<ArrayBuffer>,
  contentType: string | null,
): Promise<void> {
  const before = (await storedMessages(server, group)).length;
  const answer = await post(body, contentType);
  expect({ status: answer.status, body: answer.body }).toEqual({
    status: refusal.status,
    body: { message: refusal.message },
  });
  expectResponseHeaders(answer);
  expect((await storedMessages(server, group)).length).toBe(before);
}

const JSON_TYPE = 'application/json';
const FORM = 'application/x-www-form-urlencoded';
const TEXT_REQUIRED = 'text: is required; with /json behind its address any JSON can be posted';

describe('an accepted post', () => {
  test('is answered 200 with one body that passes every known check, after the commit', async () => {
    const other = await server.createGroup('Other');
    const answer = await postJson(other.webhook, { text: 'hello' });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ status: 'Ok', ok: true, success: true, id: `${other.id}:1` });
    expectResponseHeaders(answer);
    expect(await storedMessages(server, other)).toEqual([
      { seq: 1, text: 'hello', label: null, icon_url: null, hops: 0 },
    ]);
  });

  test('takes a trailing slash', async () => {
    expect((await postJson(`${group.webhook}/`, { text: 'slash' })).status).toBe(200);
  });

  test('takes a query string, which is not part of the message', async () => {
    expect((await postJson(`${group.webhook}?thread=1&text=no`, { text: 'queried' })).status).toBe(200);
    expect(await newestText(server, group)).toBe('queried');
  });
});

describe('a body with a JSON content type', () => {
  test.each([
    JSON_TYPE,
    'application/json; charset=utf-8',
    'APPLICATION/JSON',
    'application/json;charset=UTF-8;x=y',
    'application/cloudevents+json',
  ])('is read as JSON with %s', (type) => expectPosted('as json', '{"text":"as json"}', type));

  test('keeps every character of the text as it is', async () => {
    const text = '  a+b 90% <b>&amp; “quotes” \t\r\n e\u0301 😀 \u202e end ';
    await expectPosted(text, JSON.stringify({ text }), JSON_TYPE);
  });

  test('may begin with a byte order mark and white space', () =>
    expectPosted('marked', '\ufeff \r\n{"text":"marked"}', JSON_TYPE));

  test('may hold raw line breaks and tabs inside a string, as shell scripts put them there', () =>
    expectPosted('line 1\nline\t2\r\n', '{"text":"line 1\nline\t2\r\n"}', JSON_TYPE));

  test('may hold raw control characters next to escapes', () =>
    expectPosted('say "hi"\nC:\\\n', '{"text":"say \\"hi\\"\nC:\\\\\n"}', JSON_TYPE));

  test('may hold keys that Klatch does not know, channel and attachments among them', () =>
    expectPosted(
      'with extras',
      '{"text":"with extras","channel":"#x","attachments":[null],"blocks":[{}],"__proto__":{"a":1},"mrkdwn":true}',
      JSON_TYPE,
    ));

  test('takes the last of two keys of one name, as JSON.parse does', () =>
    expectPosted('second', '{"text":"first","text":"second"}', JSON_TYPE));

  test('may be nested 64 levels deep', () =>
    expectPosted('deep', `{"text":"deep","x":${'['.repeat(63)}${']'.repeat(63)}}`, JSON_TYPE));

  test.each([
    ['42', 'The body must be a JSON object with text, such as {"text": "hello"}'],
    ['"text"', 'The body must be a JSON object with text, such as {"text": "hello"}'],
    ['null', 'The body must be a JSON object with text, such as {"text": "hello"}'],
    ['true', 'The body must be a JSON object with text, such as {"text": "hello"}'],
    ['[{"text":"in a list"}]', 'The body must be a JSON object with text, such as {"text": "hello"}'],
    ['', 'The body is not valid JSON: it ends too early'],
    ['disk full', 'The body is not valid JSON at line 1, column 1'],
    ['{"text":"cut', 'The body is not valid JSON: it ends too early'],
    ['{"text": }', 'The body is not valid JSON at line 1, column 10'],
    ["{'text':'quotes'}", 'The body is not valid JSON at line 1, column 2'],
    ['{\n "text": "comma",\n}', 'The body is not valid JSON at line 3, column 1'],
    ['{"text":"a\nb" "c"}', 'The body is not valid JSON at line 2, column 4'],
    ['{"text":"a"}{"text":"b"}', 'The body is not valid JSON at line 1, column 13'],
    ['text=form', 'The body is not valid JSON at line 1, column 2'],
    ['{}', TEXT_REQUIRED],
    ['{"Text":"case"}', TEXT_REQUIRED],
    ['{"text":null}', 'text: must be a string, got null'],
    ['{"text":42}', 'text: must be a string, got a number'],
    ['{"text":true}', 'text: must be a string, got a boolean'],
    ['{"text":["a"]}', 'text: must be a string, got an array'],
    ['{"text":{"a":1}}', 'text: must be a string, got an object'],
  ])('is refused when it is %s', (body, message) => expectRefused({ status: 400, message }, body, JSON_TYPE));

  test('is refused in a moment, whatever it holds', async () => {
    // For these bodies, a regular expression that searched for the ends of strings took minutes.
    const started = performance.now();
    await expectRefused(
      { status: 400, message: 'The body is not valid JSON: it ends too early' },
      `{"a${'\\"'.repeat(500_000)}`,
      JSON_TYPE,
    );
    const answer = await post(`{"text":"x"${' "\n'.repeat(300_000)}`, JSON_TYPE);
    expect(answer.body).toEqual({ message: expect.stringMatching(/^The body is not valid JSON/) });
    expect(performance.now() - started).toBeLessThan(within(9_000));
  });
});

describe('a body with another content type, or none', () => {
  test.each([null, 'text/plain', FORM, 'application/octet-stream', 'nonsense', 'multipart/form-data'])(
    'is JSON when it parses as an object (%s)',
    (type) => expectPosted('object', ' {"text":"object"}', type),
  );

  test('is refused when it is a JSON object without text', () =>
    expectRefused({ status: 400, message: TEXT_REQUIRED }, '{"x":"y"}', 'text/plain'));

  test.each([
    'disk full',
    '42',
    'a+b',
    '90%',
    '%41',
    'text',
    'text&x=1',
    'payload',
    'context=text',
    'a=b&c=d',
    '[1,2]',
    '["text"]',
    'null',
    '"quoted"',
    '{not json',
    '{"text":"cut',
    'line 1\r\nline 2\n',
    ' spaces around ',
    '<b>bold</b>',
    'grüße 😀',
  ])('is plain text as it is: %s', async (text) => {
    await expectPosted(text, text, 'text/plain');
    await expectPosted(text, text, FORM);
    await expectPosted(text, text, null);
  });

  test('is decoded by its charset', () =>
    expectPosted('grüße', new Uint8Array([0x67, 0x72, 0xfc, 0xdf, 0x65]), 'text/plain; charset=ISO-8859-1'));

  test('is refused with 415 when its charset is not known', () =>
    expectRefused(
      { status: 415, message: 'The charset of the Content-Type is not known; use utf-8' },
      'x',
      'text/plain; charset=klingon',
    ));

  test.each(['text/plain', JSON_TYPE, FORM, null])('is refused when it is not valid UTF-8 (%s)', (type) =>
    expectRefused(
      { status: 400, message: 'The body is not valid utf-8: encode it so' },
      new Uint8Array([0x61, 0xff, 0x62]),
      type,
    ),
  );

  test('is refused when it is empty', async () => {
    const message = 'text: must hold something other than white space';
    await expectRefused({ status: 400, message }, '', 'text/plain');
    const without = await request(server.port, { path: `/v1/webhooks/${group.token}` });
    expect([without.status, without.body]).toEqual([400, { message }]);
  });
});

describe('a form', () => {
  test.each([
    ['text=hello+world', 'hello world'],
    ['text=a%2Bb%20%F0%9F%98%80', 'a+b 😀'],
    ['x=1&text=second', 'second'],
    ['text=90%', '90%'],
    ['text=a=b', 'a=b'],
    ['xtext=no&text&text=third&text=fourth', 'third'],
    ['text=first&context=no', 'first'],
    [`payload=${encodeURIComponent('{"text":"from payload"}')}`, 'from payload'],
    ['payload={"text":"not encoded"}', 'not encoded'],
    [`payload=${encodeURIComponent('{"text":"raw\nline"}')}&text=no`, 'raw\nline'],
  ])('is read: %s', (body, text) => expectPosted(text, body, FORM));

  test.each([
    ['text=', 'text: must hold something other than white space'],
    ['payload=', 'payload: must be a JSON object with text'],
    ['payload=42', 'payload: must be a JSON object with text'],
    ['payload={"x":1}', TEXT_REQUIRED],
  ])('is refused: %s', (body, message) => expectRefused({ status: 400, message }, body, FORM));

  test('with username and icon_url labels the message', async () => {
    const body = 'text=labelled&username=Build+bot&icon_url=https%3A%2F%2Fexample.com%2Fi.png';
    await expectPosted('labelled', body, FORM);
    const message = (await storedMessages(server, group)).at(-1);
    expect(message).toMatchObject({ label: 'Build bot', icon_url: 'https://example.com/i.png' });
  });
});

describe('a multipart form', () => {
  const multipart = (fields: Record<string, string>): [string, string] => {
    const parts = Object.entries(fields).map(
      ([name, value]) => `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
    );
    return [`${parts.join('')}--B--\r\n`, 'multipart/form-data; boundary=B'];
  };

  test('is read like any other form', async () => {
    await expectPosted('from a part\nline 2', ...multipart({ other: 'x', text: 'from a part\nline 2' }));
    await expectPosted('from payload', ...multipart({ payload: '{"text":"from payload"}' }));
  });

  test('without text is refused', () =>
    expectRefused(
      { status: 400, message: 'text: is required (a form needs the field text, or payload with JSON)' },
      ...multipart({ other: 'x' }),
    ));

  test('with its text in a file is told how it is meant', () =>
    expectRefused(
      { status: 400, message: "text: was sent as a file; with curl it is -F 'text=<name', not -F 'text=@name'" },
      '--B\r\nContent-Disposition: form-data; name="text"; filename="a.txt"\r\n\r\nx\r\n--B--\r\n',
      'multipart/form-data; boundary=B',
    ));

  test.each(['multipart/form-data; boundary=B', 'multipart/form-data', 'multipart/form-data; boundary='])(
    'that is none is refused (%s)',
    (type) => expectRefused({ status: 400, message: 'The body is not a valid multipart form' }, 'disk full', type),
  );
});
