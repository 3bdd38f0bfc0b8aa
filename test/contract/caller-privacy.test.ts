import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { aliases, informationPaths, suffixes } from '../../src/http/callers/caller-paths.ts';
import { recordingLog } from '../support/recording-log.ts';
import { TestServer, type TestGroup } from '../support/server.ts';

const TEXT = 'a-private-text';

let server: TestServer;
let group: TestGroup;
let secret: string;
const lines: string[] = [];
beforeAll(async () => {
  server = await TestServer.start(
    {
      metrics: { metricsEnabled: true },
      limits: { unknownTokensPerSecondPerSource: 100_000 },
      log: { level: 'debug' },
    },
    { log: recordingLog(lines) },
  );
  group = await server.createGroup();
  const set = { group: group.id, signed_only: false };
  ({ secret } = await server.operate<{ secret: string }>('groups.set-incoming-secret', set));
});
afterAll(() => server.stop());

/** A place in a request where a token may be: every path of the table, and queries, headers and bodies. */
interface Place {
  readonly name: string;
  readonly path: (token: string) => string;
  readonly headers?: (token: string) => Readonly<Record<string, string>>;
  /** The fields of the body, in addition to the private text. */
  readonly body?: (token: string) => object;
}

/** Examples for the paths that are patterns. Each pattern has to match one of them. */
const PATTERN_SAMPLES: readonly ((token: string) => string)[] = [
  'sendMessage',
  'sendPhoto',
  'sendDocument',
  'getMe',
].flatMap((method) => [(token: string) => `/bot${token}/${method}`, (token: string) => `/bot100:${token}/${method}`]);

function placesOf(path: string | RegExp): Place[] {
  if (path instanceof RegExp) {
    const samples = PATTERN_SAMPLES.filter((sample) => path.test(sample('0123456789abcdef')));
    if (samples.length === 0) throw new Error(`there is no sample of ${path.source}: add one`);
    return samples.map((sample) => ({ name: sample('<token>'), path: sample }));
  }
  const filled = path.replace(':any', '1').replace(':version', '10');
  if (filled.includes(':token')) return [{ name: path, path: (token) => filled.replace(':token', token) }];
  return [
    { name: `${path} by query`, path: (token) => `${filled}?token=${token}` },
    { name: `${path} by X-Gotify-Key`, path: () => filled, headers: (token) => ({ 'x-gotify-key': token }) },
    {
      name: `${path} by Authorization`,
      path: () => filled,
      headers: (token) => ({ authorization: `Bearer ${token}` }),
    },
  ];
}

const places: readonly Place[] = [
  ...[...suffixes, ...aliases, ...informationPaths].flatMap(({ path }) => placesOf(path)),
  { name: '/ by topic', path: () => '/', body: (topic) => ({ topic }) },
  { name: 'the address itself', path: (token) => `/v1/webhooks/${token}` },
];

function expectNothingPrivate(text: string, ...others: readonly string[]): void {
  for (const part of [group.token, group.token.slice(0, 12), secret.slice(6, 20), ...others])
    expect(text).not.toContain(part);
}

/** Sends a request. Resolves with status, headers and body of the answer as one text. */
async function send(
  place: Place,
  token: string,
  sent: { method: string; body?: string; headers?: object; query?: string },
) {
  const { method, body, headers = {}, query = '' } = sent;
  const path = place.path(token);
  const url = `${server.url}${path}${query === '' ? '' : (path.includes('?') ? '&' : '?') + query}`;
  const hasBody = method !== 'GET' && body !== undefined;
  const answer = await fetch(url, {
    method,
    headers: { ...place.headers?.(token), ...headers },
    redirect: 'manual',
    ...(hasBody ? { body } : {}),
  });
  return { status: answer.status, told: `${[...answer.headers].flat().join('\n')}\n${await answer.text()}` };
}

const json = { 'content-type': 'application/json' };

describe.each(places.map((place) => [place.name, place] as const))('a token at %s', (_name, place) => {
  const bodyOf = (token: string, rest: object): string => JSON.stringify({ ...place.body?.(token), ...rest });

  test('is in no answer, whatever is wrong with the request, and neither is what came with it', async () => {
    const { token } = group;
    const wrong = token.slice(0, -3);
    const requests: [string, Parameters<typeof send>[2]][] = [
      [token, { method: 'POST', headers: json, body: bodyOf(token, { nothing: [TEXT] }).slice(0, -1) }],
      [token, { method: 'POST', headers: { ...json, 'content-encoding': TEXT }, body: bodyOf(token, { text: TEXT }) }],
      [token, { method: 'POST', headers: { ...json, 'klatch-hops': TEXT }, body: bodyOf(token, { message: TEXT }) }],
      [token, { method: 'POST', headers: { 'x-gitlab-token': TEXT }, body: bodyOf(token, { message: TEXT }) }],
      [token, { method: 'POST', headers: json, body: bodyOf(token, { message: TEXT }), query: `updates=${TEXT}` }],
      [token, { method: 'POST', headers: json, body: bodyOf(token, { message: TEXT.repeat(100_000) }) }],
      [token, { method: 'DELETE', query: `key=${token}&token=${token}` }],
      [wrong, { method: 'POST', headers: json, body: bodyOf(wrong, { message: TEXT }) }],
      [`${token}%E0%A4%A`, { method: 'POST', headers: json, body: bodyOf(wrong, { message: TEXT }) }],
    ];
    for (const [sent, request] of requests) {
      const { status, told } = await send(place, sent, request);
      expect([request, status >= 200 && status < 600]).toEqual([request, true]);
      expectNothingPrivate(told, ...(status >= 400 ? [TEXT] : []));
    }
  });

  test('is in no answer of a success', async () => {
    const fields = { text: 'shown', message: 'shown', content: 'shown' };
    for (const method of ['POST', 'PUT', 'GET']) {
      const body = bodyOf(group.token, fields);
      const { told } = await send(place, group.token, { method, headers: json, body, query: `key=${group.token}` });
      expectNothingPrivate(told);
    }
  });
});

test('nothing of all that is in the log, in metrics, or in what the administrator sees of the server', async () => {
  expect(lines.length).toBeGreaterThan(0);
  expectNothingPrivate(lines.join('\n'), TEXT);
  const metrics = await (await fetch(server.metricsUrl)).text();
  expect(metrics).toMatch(/klatch_http_requests_total\{[^}]*route="send"/);
  expectNothingPrivate(metrics, TEXT);
  const { told } = await send(places.at(-1)!, group.token, { method: 'GET' });
  expectNothingPrivate(told);
  expectNothingPrivate(JSON.stringify(await server.operate('server.status', {})), TEXT);
});
