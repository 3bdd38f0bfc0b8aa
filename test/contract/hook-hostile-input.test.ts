import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { expectResponseHeaders, request, type WireResponse } from '../http/wire.ts';
import { within } from '../run/machine-speed.ts';
import { TestServer, type TestGroup } from '../support/server.ts';
import { NOT_FOUND, registerHook, rowOf, type TestHook } from './hook-fixture.ts';

let server: TestServer;
let group: TestGroup;
let hook: TestHook;
const errors: string[] = [];

beforeAll(async () => {
  const limits = { hookRegistrationsPerGroupPerMinute: 100_000, hookChangesPerGroupPerMinute: 100_000 };
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: (event: string) => errors.push(event) };
  server = await TestServer.start(
    { limits },
    { log: { ...log, child: () => ({ ...log, child: () => log as never }) } },
  );
});
afterAll(() => server.stop());
beforeEach(async () => {
  group = await server.createGroup();
  hook = await registerHook(group, { url: 'https://receiver.invalid/a-private-path' });
});

const MANY = 250_000;
const path = (url: string): string => new URL(url).pathname;
const routes = (): [string, string][] => [
  ['POST', `${path(group.webhook)}/reverse`],
  ['PATCH', path(hook.url)],
  ['POST', `${path(hook.url)}/redeliver`],
];

/**
 * Sends hostile input. The answer has to be a 400 that gives the reason, and that does not quote pages of the input.
 */
async function refused(method: string, to: string, body: string | Buffer): Promise<string> {
  const from = performance.now();
  const answer = await request(server.port, {
    method,
    path: to,
    body,
    headers: { 'content-type': 'application/json' },
  });
  expect([method, to, answer.status, answer.text]).toEqual([method, to, 400, expect.any(String)]);
  expectRefusal(answer);
  expect(performance.now() - from).toBeLessThan(within(9_000));
  return answer.body.message;
}

function expectRefusal(answer: WireResponse): void {
  expectResponseHeaders(answer);
  expect(answer.body).toEqual({ message: expect.stringMatching(/^.{5,300}$/u) });
}

const nested = (open: string, close: string): string => open.repeat(MANY) + close.repeat(MANY);

describe('hostile bodies', () => {
  const bodies: [string, string | Buffer][] = [
    ['nothing', ''],
    ['null', 'null'],
    ['a list', '[]'],
    ['a number of 500,000 digits', '9'.repeat(500_000)],
    ['half a million brackets', '['.repeat(500_000)],
    ['a deep list', nested('[', ']')],
    ['a deep object that never closes', '{"a":'.repeat(150_000)],
    ['deep values', `{"url":${nested('[', ']')}}`],
    ['a deep pause', `{"paused":${nested('[', ']')},"only":[[]],"url":1}`],
    [
      'hundreds of thousands of elements',
      `{"url":1,"only":[${'1,'.repeat(MANY)}1],"skip":[${'{},'.repeat(90_000)}{}]}`,
    ],
    ['tens of thousands of keys', `{${Array.from({ length: 60_000 }, (_, n) => `"k${n}":1`).join(',')}}`],
    [
      'what every object has',
      '{"__proto__":{"url":"http://a.example/","paused":true,"discard_backlog":true},"constructor":{"prototype":{}}}',
    ],
    ['a key twice', '{"url":"http://a.example/","url":1,"paused":true,"paused":1,"from":"1:1","from":1}'],
    ['NaN', '{"batch":NaN}'],
    ['infinity', '{"url":1,"batch":1e999,"from":1e999}'],
    ['2^53 + 1', '{"url":1,"batch":9007199254740993,"from":9007199254740993}'],
    ['a negative number', '{"url":1,"batch":-1,"from":-1}'],
    ['a fraction', '{"url":1,"batch":1.5,"from":1.5}'],
    ['only white space', ' '.repeat(1_000_000)],
    ['raw control characters', `{"url":"${'\u0001'.repeat(200_000)}`],
    ['a million quotes', '"'.repeat(1_000_000)],
    ['a million backslashes', `{"url":"${'\\'.repeat(1_000_001)}`],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0xff, 0xfe, 0x7d])],
    ['NUL', '\0'],
  ];

  test.each(bodies)('%s is a 400 with a sentence at each route', async (_name, body) => {
    const before = await rowOf(server, hook);
    for (const [method, to] of routes()) await refused(method, to, body);
    expect(await rowOf(server, hook)).toEqual(before);
  });

  test.each([
    '{"order":"__proto__"}',
    '{"order":"constructor"}',
    '{"order":null}',
    '{"signature":"v1b"}',
    '{"signature":["v1"]}',
    '{"skip":["__proto__"]}',
    '{"skip":"webhook"}',
    '{"skip":{"0":"webhook","length":1}}',
    '{"skip":["webhook","webhook","bot"]}',
    '{"batch":"1"}',
    '{"batch":true}',
    '{"batch":0}',
    '{"batch":101}',
    '{"batch":-0}',
    '{"paused":"false"}',
    '{"paused":0}',
    '{"paused":null}',
    '{"rotate_secret":1}',
    '{"rotate_secret":"yes"}',
    '{"secret":"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}',
    '{"url":"http://elsewhere.example/"}',
    '{"id":1,"generation":9,"cursor":0,"state":"active"}',
    '{}',
  ])('PATCH refuses %s and changes nothing', async (body) => {
    const before = await rowOf(server, hook);
    await refused('PATCH', path(hook.url), body);
    expect(await rowOf(server, hook)).toEqual(before);
  });

  test('redeliver refuses whatever is neither a place nor messages of the group', async () => {
    const other = await server.createGroup('Other');
    const ids = (id: number): string[] => [`${id}:1`, `${id}:0`, `${id}:2147483648`, `${id}:9007199254740993`];
    const hostile = [
      ...ids(group.id),
      ...ids(other.id),
      `${group.id}:9999999999999999`,
      `${'9'.repeat(40)}:1`,
      `${group.id}:1e1`,
      `${group.id}:-1`,
      `${group.id}:01`,
      `+${group.id}:1`,
      `${group.id}:1\n`,
      ` ${group.id}:1`,
      '',
      '0:0',
      ':',
      '١:١',
      '__proto__',
      'constructor',
      'NaN',
      'Infinity',
      'null',
      'x'.repeat(101),
    ];
    const times = [
      '0000-01-01T00:00:00Z',
      '0000-12-31T23:59:59.999Z',
      '0001-01-01T00:00:00+00:01',
      '9999-12-31T23:59:59-00:01',
      '-000001-01-01T00:00:00Z',
      '+010000-01-01T00:00:00Z',
      '275760-09-13T00:00:00Z',
      '2026-02-30T00:00:00Z',
      '2026-01-01T24:00:00Z',
      '2026-01-01T00:00:60Z',
      '2026-01-01T00:00:00+99:99',
      '2026-01-01T00:00:00',
      'now',
      'epoch',
      '-infinity',
      'today',
      '1767225600',
      "2026-01-01T00:00:00Z'; drop table message; --",
    ];
    const before = await rowOf(server, hook);
    for (const from of [...hostile, ...times])
      await refused('POST', `${path(hook.url)}/redeliver`, JSON.stringify({ from }));
    for (const id of [...hostile, ...times])
      await refused('POST', `${path(hook.url)}/redeliver`, JSON.stringify({ only: [id] }));
    expect(await rowOf(server, hook)).toEqual(before);
  });

  test.each([
    '{"discard_backlog":false}',
    '{"skip":1}',
    '{"skip":"true"}',
    '{"discard_backlog":true,"from":"1:1"}',
    '{"only":[]}',
    '{"only":"1:1"}',
  ])('redeliver refuses %s', async (body) => {
    await refused('POST', `${path(hook.url)}/redeliver`, body);
  });
});

describe('hostile queries of the delivery log', () => {
  test.each([
    'before=0000-01-01T00:00:00Z',
    'before=0001-01-01T00:00:00%2B00:01',
    'before=9999-12-31T23:59:59-00:01',
    'before=%2B010000-01-01T00:00:00Z',
    'before=2026-01-01T00:00:00Z_1_2147483648',
    'before=2026-01-01T00:00:00Z_9999999999999999_1',
    'before=2026-01-01T00:00:00Z_-1_1',
    'before=%ff',
    'before=%E0%A4%A',
    'before=%00',
    'before=_1_1',
    `before=${'9'.repeat(8_000)}`,
    "before=2026-01-01T00:00:00Z'",
    'limit=00',
    'limit=-1',
    'limit=1.0',
    'limit=1e1',
    'limit=0x10',
    'limit=+5',
    'limit=9007199254740993',
    'limit=%D9%A1',
    'limit=101&limit=1',
  ])('%s is a 400 with a sentence', async (query) => {
    const answer = await request(server.port, { method: 'GET', path: `${path(hook.url)}/deliveries?${query}` });
    expect([query, answer.status]).toEqual([query, 400]);
    expectRefusal(answer);
  });

  test.each([
    '',
    '?',
    '??',
    '&&&',
    '?__proto__=1',
    '?constructor=1',
    '?before[]=1',
    '?limit[a]=1',
    `?${'a=&'.repeat(3_000)}`,
  ])('what asks for nothing is not held against it: %s', async (query) => {
    const answer = await request(server.port, {
      method: 'GET',
      path: `${path(hook.url)}/deliveries${query.slice(0, 1) === '&' ? `?${query}` : query}`,
    });
    expect([answer.status, answer.body]).toEqual([200, []]);
  });

  test.each([
    '0001-01-01T00:00:00Z',
    '9999-12-31T23:59:59.999Z',
    '9999-12-31T23:59:59.9999999Z_999999999999999_999999999',
  ])('the farthest moments are moments: %s', async (before) => {
    const answer = await request(server.port, { method: 'GET', path: `${path(hook.url)}/deliveries?before=${before}` });
    expect([answer.status, answer.body]).toEqual([200, []]);
  });
});

describe('hostile ids', () => {
  test.each([
    '0',
    '-1',
    '00',
    '1e3',
    '0x1',
    '1.0',
    '2147483648',
    '9007199254740993',
    '9'.repeat(300),
    '%00',
    '%E0%A4%A',
    '%D9%A1',
    '__proto__',
    'constructor',
    ' 1',
    '1%20',
    '..%2f1',
    '1;x',
  ])('%s is no hook at any route', async (id) => {
    const base = `${path(group.webhook)}/reverse/${id.replaceAll(' ', '%20')}`;
    for (const [method, to] of [
      ['PATCH', ''],
      ['POST', '/ping'],
      ['GET', '/deliveries'],
      ['POST', '/redeliver'],
    ] as const) {
      const answer = await request(server.port, {
        method,
        path: base + to,
        ...(method === 'GET' ? {} : { body: '{"paused":true,"discard_backlog":true}' }),
      });
      expect([method, to, answer.status, answer.body]).toEqual([method, to, 410, NOT_FOUND]);
      expectResponseHeaders(answer);
    }
  });

  test('a hook of another group is none, and stays as it is', async () => {
    const other = await server.createGroup('Other');
    const before = await rowOf(server, hook);
    const base = `${path(other.webhook)}/reverse/${hook.id}`;
    for (const [method, to, body] of [
      ['PATCH', '', '{"paused":true,"rotate_secret":true}'],
      ['POST', '/ping', '{}'],
      ['POST', '/redeliver', '{"discard_backlog":true}'],
      ['POST', '/redeliver', '{"from":"2020-01-01T00:00:00Z"}'],
      ['DELETE', '', '{}'],
    ] as const) {
      const answer = await request(server.port, { method, path: base + to, body });
      expect([method, to, answer.status, answer.body]).toEqual([method, to, 410, NOT_FOUND]);
    }
    expect(await rowOf(server, hook)).toEqual(before);
  });
});

test('none of it was an error of the server', () => {
  expect(errors).toEqual([]);
});
