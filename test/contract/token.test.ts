import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { expectResponseHeaders, newestText, request, requestBytes, Wire, type WireResponse } from '../http/wire.ts';
import { postJson, readJson, TestServer, type TestGroup } from '../support/server.ts';

const WRONG = { message: 'Wrong integration token' };
const GONE = { message: 'This token no longer exists(or never existed)' };

let server: TestServer;
let group: TestGroup;
beforeAll(async () => {
  // With these limits the throttle of failures does not act; test/http/bounds.test.ts tests it.
  server = await TestServer.start({ limits: { unknownTokensPerSecondPerSource: 100_000, unknownTokenTtlMs: 60_000 } });
  group = await server.createGroup();
});
afterAll(() => server.stop());

function ask(method: string, path: string, body?: string): Promise<WireResponse> {
  const headers = body === undefined ? {} : { 'content-type': 'application/json' };
  return request(server.port, { method, path, headers, ...(body === undefined ? {} : { body }) });
}

const changeCase = (token: string): string =>
  token.replace(/[a-z]/i, (letter) => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()));

/** Tokens that this server does not know, by kind; each is one segment of a path. */
const wrongTokens = (): [string, string][] => [
  ['unknown', 'x'.repeat(43)],
  ['short', 'abc'],
  ['very long', 'a'.repeat(10_000)],
  ['one character more', `${group.token}A`],
  ['one character less', group.token.slice(0, -1)],
  ['another case', changeCase(group.token)],
  ['percent-encoded garbage', '%E0%A4%A'],
  ['a lone percent sign', '%'],
  ['garbage behind the token', `${group.token}%E0%A4%A`],
  ['an encoded slash', `${group.token}%2Freverse`],
  ['an encoded NUL', `${group.token}%00`],
  ['other characters', "a'b;c--d\u00ff".replace('\u00ff', '%C3%BF')],
  ['the name of a route', 'reverse'],
  ['__proto__', '__proto__'],
];

describe('a wrong token', () => {
  test('is 404 with status failure on send', async () => {
    for (const [name, token] of wrongTokens()) {
      const answer = await ask('POST', `/v1/webhooks/${token}`, '{"text":"x"}');
      expect([name, answer.status, answer.body]).toEqual([name, 404, { ...WRONG, status: 'failure' }]);
      expectResponseHeaders(answer);
      expect(answer.text).not.toContain(group.token.slice(0, 8));
    }
  });

  test('is 404 on every other route, whatever the method', async () => {
    for (const [name, token] of wrongTokens()) {
      const routes: [string, string][] = [
        ['GET', ''],
        ['PUT', ''],
        ['GET', '/reverse'],
        ['POST', '/reverse'],
        ['OPTIONS', '/reverse'],
        ['TRACE', '/reverse'],
        ['GET', '/reverse/1'],
        ['DELETE', '/reverse/1'],
        ['PUT', '/reverse/1'],
        ['DELETE', '/reverse/abc'],
      ];
      for (const [method, rest] of routes) {
        const answer = await ask(method, `/v1/webhooks/${token}${rest}`);
        expect([name, method, rest, answer.status, answer.body]).toEqual([name, method, rest, 404, WRONG]);
        expectResponseHeaders(answer);
      }
    }
  });

  test('is 410 on status alone', async () => {
    for (const [name, token] of wrongTokens()) {
      const answer = await ask('GET', `/v1/webhooks/${token}/status`);
      expect([name, answer.status, answer.body]).toEqual([name, 410, GONE]);
      expectResponseHeaders(answer);
    }
  });

  test('is answered before the body is read, or sent', async () => {
    for (const path of ['', '/reverse']) {
      const wire = await Wire.open(server.port);
      const headers = { 'content-length': '900000', 'content-type': 'application/json' };
      wire.write(requestBytes({ path: `/v1/webhooks/${'x'.repeat(43)}${path}`, headers, body: '{"te' }));
      expect((await wire.response()).status).toBe(404);
      wire.close();
    }
  });

  test('comes before everything that is wrong with the body or the headers', async () => {
    const headers = { 'content-encoding': 'nonsense', 'klatch-hops': 'x', 'idempotency-key': '' };
    const path = `/v1/webhooks/${'x'.repeat(43)}`;
    expect((await request(server.port, { path, headers, body: 'x' })).status).toBe(404);
    expect((await request(server.port, { path, headers: { 'content-length': '99999999999' } })).status).toBe(404);
  });

  test('is 404 with HEAD, without a body', async () => {
    const answer = await ask('HEAD', `/v1/webhooks/${'x'.repeat(43)}/reverse`);
    expect([answer.status, answer.text]).toEqual([404, '']);
    expectResponseHeaders(answer);
  });
});

describe('/status', () => {
  test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])('is 200 by %s', async (method) => {
    const answer = await ask(method, `/v1/webhooks/${group.token}/status`);
    expect([answer.status, answer.body]).toEqual([200, { status: 'Ok' }]);
    expectResponseHeaders(answer);
  });

  test('is 200 by HEAD, without a body, and with a trailing slash', async () => {
    const head = await ask('HEAD', `/v1/webhooks/${group.token}/status`);
    expect([head.status, head.text]).toEqual([200, '']);
    expect((await ask('GET', `/v1/webhooks/${group.token}/status/`)).status).toBe(200);
  });
});

describe('a path that is not served', () => {
  test.each([
    '/',
    '/v1',
    '/v1/',
    '/v2/webhooks/x',
    '/v1/webhooks',
    '/v1/webhooks/',
    '/V1/webhooks/TOKEN',
    '/v1/Webhooks/TOKEN',
    '/v1//webhooks/TOKEN',
    '//v1/webhooks/TOKEN',
    '/v1/webhooks//TOKEN',
    '/v1/webhooks/TOKEN//reverse',
    '/v1/webhooks/TOKEN/Reverse',
    '/v1/webhooks/TOKEN/other',
    '/v1/webhooks/TOKEN/reverse/1/other',
    '/v1/webhooks/TOKEN/%E0%A4%A',
    '/v1/../v1/webhooks/TOKEN/x',
    '/v1/webhooks/TOKEN/..',
  ])('is 404 and says nothing of the path: %s', async (path) => {
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const answer = await ask(method, path.replace('TOKEN', group.token));
      expect([answer.status, answer.body]).toEqual([404, { message: 'There is nothing here: check the address' }]);
      expectResponseHeaders(answer);
      const head = [...answer.headers].flat().join();
      expect(head).not.toContain(group.token);
    }
  });

  test('is 404 for an asterisk, too', async () => {
    expect((await ask('OPTIONS', '*')).status).toBe(404);
  });
});

describe('the whole URL as the request target, as a proxy may send it', () => {
  test('is the same as its path', async () => {
    const answer = await ask('POST', `http://klatch.example/v1/webhooks/${group.token}`, '{"text":"absolute"}');
    expect(answer.status).toBe(200);
    expect(await newestText(server, group)).toBe('absolute');
  });
});

describe('an archived group', () => {
  async function archive(id: number): Promise<void> {
    await server.database.query(
      (sql) => sql`update conversation_head set archived_at = now() where conversation_id = ${id}`,
    );
  }
  const ARCHIVED = { message: 'This group is archived' };

  test('is 410 on send when its token was not used before', async () => {
    const archived = await server.createGroup('Archived');
    await archive(archived.id);
    const answer = await postJson(archived.webhook, { text: 'x' });
    expect([answer.status, answer.body]).toEqual([410, ARCHIVED]);
    expectResponseHeaders(answer);
  });

  test('is 410 on send when its token is remembered, and 200 again when it has returned', async () => {
    const archived = await server.createGroup('Archived later');
    expect((await postJson(archived.webhook, { text: 'before' })).status).toBe(200);
    await archive(archived.id);
    for (let time = 0; time < 2; time += 1) {
      const answer = await postJson(archived.webhook, { text: 'x' });
      expect([answer.status, answer.body]).toEqual([410, ARCHIVED]);
    }
    await server.database.query(
      (sql) => sql`update conversation_head set archived_at = null where conversation_id = ${archived.id}`,
    );
    expect((await postJson(archived.webhook, { text: 'after' })).body).toMatchObject({ id: `${archived.id}:2` });
  });

  test('still has its reverse webhooks', async () => {
    const archived = await server.createGroup('Archived with hooks');
    const hook = await postJson(`${archived.webhook}/reverse`, { url: 'http://127.0.0.1:9/' });
    await archive(archived.id);
    expect((await fetch(`${archived.webhook}/status`)).status).toBe(200);
    expect((await readJson(await fetch(`${archived.webhook}/reverse`))).body).toHaveLength(1);
    expect((await postJson(`${archived.webhook}/reverse`, { url: 'http://127.0.0.1:9/b' })).status).toBe(201);
    const one = `${archived.webhook}/reverse/${hook.body.id}`;
    expect((await fetch(one)).status).toBe(200);
    expect((await fetch(one, { method: 'DELETE' })).status).toBe(202);
  });
});

describe('a rotated token', () => {
  test('is refused at once on every route, while the new one finds the same hooks', async () => {
    const rotated = await server.createGroup('Rotated');
    const registered = await postJson(`${rotated.webhook}/reverse`, { url: 'http://127.0.0.1:9/' });
    expect((await postJson(rotated.webhook, { text: 'before' })).status).toBe(200);

    const { token } = await server.operate<{ token: string }>('groups.rotate-token', { group: rotated.id });
    expect(token).not.toBe(rotated.token);
    const refused = await postJson(rotated.webhook, { text: 'after' });
    expect([refused.status, refused.body]).toEqual([404, { ...WRONG, status: 'failure' }]);
    expect((await fetch(`${rotated.webhook}/reverse`)).status).toBe(404);
    expect((await fetch(`${rotated.webhook}/reverse/${registered.body.id}`, { method: 'DELETE' })).status).toBe(404);
    expect((await fetch(`${rotated.webhook}/status`)).status).toBe(410);

    const renewed = `${server.url}/v1/webhooks/${token}`;
    expect((await postJson(renewed, { text: 'after' })).body).toMatchObject({ id: `${rotated.id}:2` });
    const hooks = await readJson(await fetch(`${renewed}/reverse`));
    expect(hooks.body).toMatchObject([{ id: registered.body.id, url: 'http://127.0.0.1:9/' }]);
  });

  test('is refused at once on every route when another node has rotated it and its word was lost', async () => {
    const rotated = await server.createGroup('Rotated elsewhere');
    expect((await postJson(rotated.webhook, { text: 'before' })).status).toBe(200);
    await server.database.query(
      (sql) => sql`update integration set token_hash = ${'0'.repeat(64)} where conversation_id = ${rotated.id}`,
    );
    expect((await fetch(`${rotated.webhook}/reverse`)).status).toBe(404);
    expect((await postJson(`${rotated.webhook}/reverse`, { url: 'http://127.0.0.1:9/' })).status).toBe(404);
    expect((await postJson(rotated.webhook, { text: 'after' })).status).toBe(404);
    expect((await fetch(`${rotated.webhook}/status`)).status).toBe(410);
  });
});
