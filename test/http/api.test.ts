import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { errorKinds } from '../../src/errors.ts';
import { newSessionToken } from '../../src/operations/core/session-cache.ts';
import { operationTable } from '../../src/operations/table.ts';
import { callAs } from '../support/call.ts';
import { createPerson, signIn, type TestPerson } from '../support/people.ts';
import { TestServer } from '../support/server.ts';
import { expectResponseHeaders, request, Wire, type WireResponse, type WireRequest } from './wire.ts';

const ORIGIN = 'https://app.example';
let server: TestServer;
let admin: TestPerson;
beforeAll(async () => {
  server = await TestServer.start({ http: { cors: [ORIGIN] }, limits: { unknownTokensPerSecondPerSource: 100_000 } });
  admin = await createPerson(server, 'root', { admin: true });
});
afterAll(() => server.stop());

const JSON_TYPE = { 'content-type': 'application/json' };
const USERS = '/v1/api/accounts.list';

function callApi(options: Partial<WireRequest> & { token?: string }): Promise<WireResponse> {
  const { token = admin.token, path = USERS, headers = {}, ...rest } = options;
  return request(server.port, {
    path,
    ...rest,
    headers: { ...JSON_TYPE, authorization: `Bearer ${token}`, ...headers },
  });
}

/** Checks the form that all refusals have in common. */
function expectError(response: WireResponse, code: keyof typeof errorKinds, sentence?: string): void {
  expect([response.status, response.body?.code]).toEqual([errorKinds[code].status, code]);
  expect(Object.keys(response.body)).toEqual(['message', 'code']);
  if (sentence !== undefined) expect(response.body.message).toBe(sentence);
  expectResponseHeaders(response);
}

describe('POST /v1/api/<operation>', () => {
  test('takes the input as its body and answers with the output', async () => {
    const response = await callApi({ body: '{"role":"admin"}' });
    expect([response.status, response.body.users.map((user: { nick: string }) => user.nick)]).toEqual([200, ['root']]);
    expectResponseHeaders(response);
  });

  test.each<[string, Partial<WireRequest>]>([
    ['no body', { headers: {} }],
    ['an empty body of no type', { headers: { 'content-type': '' }, body: '' }],
    ['another JSON type', { headers: { 'content-type': 'application/problem+json; charset=utf-8' }, body: '{}' }],
    ['no type', { headers: { 'content-type': '' }, body: '{}' }],
    ['a trailing slash', { path: `${USERS}/` }],
    ['a scheme in capitals', { headers: { authorization: 'BEARER TOKEN' } }],
  ])('takes %s', async (_, asked) => {
    const authorization = asked.headers?.['authorization']?.replace('TOKEN', admin.token);
    const headers = { ...asked.headers, ...(authorization === undefined ? {} : { authorization }) };
    expect((await callApi({ ...asked, headers })).status).toBe(200);
  });

  test('is one more way to what the control socket does', async () => {
    const group = await callAs(server, admin, 'groups.create', { title: 'Made over HTTP' });
    // The administrator on the control socket is not a member, so the role is null.
    expect(await server.operate('groups.info', { group: group.id })).toEqual({ ...group, role: null });
  });
});

describe('a caller', () => {
  test('without a token is nobody, and is told to sign in where somebody is needed', async () => {
    const response = await request(server.port, { path: USERS });
    expectError(response, 'unauthenticated', errorKinds.unauthenticated.sentence);
    expect(response.headers.get('www-authenticate')).toBe('Bearer realm="klatch"');
  });

  test.each([
    ['an unknown token', `Bearer ${newSessionToken('user').token}`],
    ['a token that could be none', 'Bearer kls_x'],
    ['no token', 'Bearer'],
    ['two tokens', `Bearer ${newSessionToken('user').token} ${newSessionToken('user').token}`],
    ['another scheme', `Basic ${Buffer.from('root:root').toString('base64')}`],
    ['an empty header', ''],
  ])('with %s is refused, whatever may be called without one', async (_, authorization) => {
    const response = await callApi({ headers: { authorization } });
    expectError(response, 'unauthenticated');
    expect(response.headers.get('www-authenticate')).toBe('Bearer realm="klatch", error="invalid_token"');
  });

  test('with a session that has ended is refused', async () => {
    const { token } = await signIn(server, admin.id);
    await server.database.query(
      (sql) => sql`update session set expires_at = now() where label = 'test' and id = (
      select max(id) from session)`,
    );
    expectError(await callApi({ token }), 'unauthenticated');
  });

  test('who may not is told so, before the input is read', async () => {
    const user = await createPerson(server, 'user');
    expectError(await callApi({ token: user.token, body: '{"nonsense":1}' }), 'forbidden');
  });

  test('with the token of a bot gets no further than its scopes', async () => {
    const bot = await signIn(server, admin.id, ['messages:read']);
    expectError(await callApi({ token: bot.token }), 'forbidden');
  });
});

describe('an operation', () => {
  test.each([
    '/v1/api/users.nothing',
    '/v1/api/__proto__',
    '/v1/api/constructor',
    '/v1/api/accounts.list%00',
    '/v1/api/%',
  ])('that does not exist is 404 to everybody and by every method: %s', async (path) => {
    for (const method of ['POST', 'GET', 'DELETE']) {
      for (const headers of [{}, { authorization: `Bearer ${admin.token}` }]) {
        const response = await request(server.port, { method, path, headers });
        expectError(response, 'not_found', 'There is no such operation: docs/api.md lists them');
      }
    }
  });

  test('of the command line is none here', async () => {
    for (const { name, who } of operationTable().values()) {
      if (who === 'system') expectError(await callApi({ path: `/v1/api/${name}` }), 'not_found');
    }
  });

  test.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'TRACE'])('is called with POST alone: %s', async (method) => {
    const response = await callApi({ method });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST, OPTIONS']);
    expectResponseHeaders(response);
  });
});

describe('a body', () => {
  test.each<[string, keyof typeof errorKinds, Partial<WireRequest>]>([
    [
      'that is a form',
      'unsupported_media',
      { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'a=b' },
    ],
    ['that is plain text', 'unsupported_media', { headers: { 'content-type': 'text/plain' }, body: '{}' }],
    ['that is encoded strangely', 'unsupported_media', { headers: { 'content-encoding': 'zstd' }, body: '{}' }],
    ['that is not JSON', 'invalid_input', { body: '{"role":' }],
    ['that is not UTF-8', 'invalid_input', { body: Buffer.from([0x7b, 0xff, 0x7d]) }],
    ['that is a list', 'invalid_input', { body: '[]' }],
    ['that is a text', 'invalid_input', { body: '"role"' }],
    ['that is null', 'invalid_input', { body: 'null' }],
    ['with a key that is not known', 'invalid_input', { body: '{"roll":"admin"}' }],
    ['with a key of the prototype', 'invalid_input', { body: '{"__proto__":{"role":"admin"}}' }],
    ['with NUL', 'invalid_input', { body: '{"after":"\\u0000"}' }],
    ['with half of a pair', 'invalid_input', { body: '{"after":"\\ud800"}' }],
    ['with half of a pair as a key', 'invalid_input', { body: '{"\\udc00":1}' }],
    ['with too many values', 'invalid_input', { body: `{"after":[${'1,'.repeat(25_000)}1]}` }],
    ['that is nested deep', 'invalid_input', { body: `{"after":${'['.repeat(30_000)}${']'.repeat(30_000)}}` }],
    ['that is too large', 'too_large', { body: `{"after":"${'x'.repeat(1024 * 1024)}"}` }],
    ['that says it is too large', 'too_large', { headers: { 'content-length': '99999999' } }],
  ])('%s is refused: %s', async (_, code, asked) => {
    expectError(await callApi(asked), code);
  });

  test('with thousands of mistakes is answered with a few of them', async () => {
    const body = JSON.stringify(Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`wrong-${i}`, i])));
    const response = await callApi({ body });
    expectError(response, 'invalid_input');
    expect(response.text.length).toBeLessThan(2_500);
  });

  test('is asked for when the caller waits for that, and not of one who may not come in', async () => {
    const user = await createPerson(server, 'patient');
    for (const [token, status] of [
      [admin.token, 100],
      [user.token, 403],
      ['kls_x', 401],
    ] as const) {
      const wire = await Wire.open(server.port);
      wire.write(`POST ${USERS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n`);
      wire.write('content-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n');
      expect((await wire.response()).status).toBe(status);
      wire.close();
    }
  });
});

describe('a browser', () => {
  test('of an origin that may is let through with a token', async () => {
    const headers = {
      origin: ORIGIN,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type',
    };
    const preflight = await request(server.port, { method: 'OPTIONS', path: USERS, headers });
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, ORIGIN]);
    expect(preflight.headers.get('access-control-allow-headers')).toContain('authorization');
    expect(preflight.headers.get('access-control-allow-methods')).toContain('POST');
    const response = await callApi({ headers: { origin: ORIGIN } });
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([200, ORIGIN]);
    const refusal = await callApi({ token: 'kls_x', headers: { origin: ORIGIN } });
    expect([refusal.status, refusal.headers.get('access-control-allow-origin')]).toEqual([401, ORIGIN]);
  });

  test('of another origin is told nothing that its page could read', async () => {
    const response = await callApi({ headers: { origin: 'https://evil.example' } });
    expect(response.headers.get('access-control-allow-origin')).not.toBe('https://evil.example');
  });
});
