import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { newSessionToken } from '../../../src/operations/core/session-cache.ts';
import { callAs } from '../../support/call.ts';
import { TestMailServer } from '../../support/mail-server.ts';
import { eventually } from '../../support/eventually.ts';
import { createPerson } from '../../support/people.ts';
import { TestServer } from '../../support/server.ts';
import { expectResponseHeaders } from '../wire.ts';
import { TestBrowser } from './cookies.ts';

const DAY_MS = 24 * 60 * 60_000;
const NOBODY = { session: null, account: null, expires_at: null };

let mail: TestMailServer;
let server: TestServer;
beforeAll(async () => {
  mail = await TestMailServer.start();
  server = await TestServer.start({
    registration: 'open',
    smtp: mail.config(),
    limits: { unknownTokensPerSecondPerSource: 100_000 },
  });
  await server.operate('accounts.create', { nick: 'alice', name: 'Alice' });
});
afterAll(async () => {
  await server.stop();
  await mail.stop();
});

const whoIs = async (browser: TestBrowser) => (await browser.send({ method: 'GET', path: '/v1/session' })).body;
const daysLeft = async (session: number): Promise<number> => {
  const [row] = await server.database.query(
    (sql) => sql<{ at: Date | null }[]>`select expires_at as at from session where id = ${session}`,
  );
  return (row!.at!.getTime() - Date.now()) / DAY_MS;
};

describe('POST /v1/session', () => {
  test('signs in by a link, and gives the token to no script', async () => {
    const browser = new TestBrowser(server);
    const { link } = await server.operate<{ link: string }>('accounts.invite', { user: 'alice' });
    const response = await browser.send({ path: '/v1/session', body: JSON.stringify({ link, label: 'Firefox' }) });
    expect([response.status, response.body]).toEqual([
      200,
      {
        status: 'signed_in',
        session: expect.any(Number),
        account: { id: expect.any(Number), kind: 'user', nick: 'alice', name: 'Alice', role: 'user' },
        expires_at: null,
      },
    ]);
    expectResponseHeaders(response);
    expect(response.text).not.toContain('kls_');
    expect(browser.cookie).toMatch(/^klatch-[0-9a-f]{8}=kls_[\w-]{43}$/);
    expect(browser.attributes).toEqual(['Path=/', 'Max-Age=2592000', 'HttpOnly', 'SameSite=Strict']);
    const { body } = await browser.call('sessions.list');
    expect(body.sessions).toContainEqual(
      expect.objectContaining({ id: response.body.session, label: 'Firefox', current: true }),
    );
  });

  test('names the cookie after the installation, so that two servers of one host have a cookie each', async () => {
    const browser = await TestBrowser.signedIn(server, 'alice');
    const [row] = await server.database.query(
      (sql) => sql<{ value: string }[]>`select value from setting where name = 'store_id'`,
    );
    expect(browser.cookie!.split('=')[0]).toBe(`klatch-${row!.value.slice(0, 8)}`);
    const other = new TestBrowser(server);
    other.cookie = browser.cookie!.replace(/-[0-9a-f]{8}=/, '-00000000=');
    expect(await whoIs(other)).toEqual(NOBODY);
    // The server finds its own cookie among those of other servers.
    other.cookie = `${other.cookie}; theme=dark; ${browser.cookie}`;
    expect(await whoIs(other)).toMatchObject({ account: { nick: 'alice' } });
  });

  test('signs up with a code, over the same two steps as elsewhere', async () => {
    const browser = new TestBrowser(server);
    const { body: started } = await browser.call('auth.start', { address: 'bob@example.org' });
    const code = await mail.codeTo('bob@example.org');
    const { transaction } = started;
    const proven = await browser.send({ path: '/v1/session', body: JSON.stringify({ transaction, code }) });
    expect(proven.body).toEqual({ status: 'sign_up', transaction });
    expect(browser.cookie).toBeNull();
    const made = await browser.send({ path: '/v1/session', body: JSON.stringify({ transaction, nick: 'bob' }) });
    expect(made.body).toMatchObject({ status: 'signed_in', account: { nick: 'bob' } });
    expect(await daysLeft(made.body.session)).toBeCloseTo(30, 1);
  });

  test('says as the operations do why somebody does not come in', async () => {
    const browser = new TestBrowser(server);
    const send = (input: object) => browser.send({ path: '/v1/session', body: JSON.stringify(input) });
    expect(await send({ link: 'kll_x' })).toMatchObject({ status: 410, body: { code: 'activation_expired' } });
    expect(await send({})).toMatchObject({ status: 400, body: { code: 'invalid_input' } });
    expect(await send({ link: 'kll_x', more: 1 })).toMatchObject({ status: 400, body: { code: 'invalid_input' } });
    expect(browser.cookie).toBeNull();
  });

  test('ends the session that the browser had before', async () => {
    const browser = await TestBrowser.signedIn(server, 'alice');
    const former = new TestBrowser(server);
    former.cookie = browser.cookie;
    const { link } = await server.operate<{ link: string }>('accounts.invite', { user: 'alice' });
    await browser.send({ path: '/v1/session', body: JSON.stringify({ link }) });
    expect(await whoIs(browser)).toMatchObject({ account: { nick: 'alice' } });
    // The server ends the former session only after its answer: before that, the browser has no other cookie.
    await eventually(
      () => whoIs(former),
      ({ session }) => session === null,
    );
  });
});

describe('DELETE /v1/session', () => {
  test('ends the session and takes the cookie back, and nothing else', async () => {
    const browser = await TestBrowser.signedIn(server, 'alice');
    const copy = new TestBrowser(server);
    copy.cookie = browser.cookie;
    const response = await browser.send({ method: 'DELETE', path: '/v1/session' });
    expect([response.status, response.body]).toEqual([200, NOBODY]);
    expect(browser.cookie).toBeNull();
    expect(response.headers.get('set-cookie')).toMatch(
      /^klatch-[0-9a-f]{8}=; Path=\/; Max-Age=0; HttpOnly; SameSite=Strict$/,
    );
    expect(response.headers.has('clear-site-data')).toBe(false);
    expect(await whoIs(copy)).toEqual(NOBODY);
    expect(await copy.call('profile.show')).toMatchObject({ status: 401, body: { code: 'unauthenticated' } });
  });

  test('takes back a cookie whose session has ended already', async () => {
    const browser = await TestBrowser.signedIn(server, 'alice');
    await server.database.query((sql) => sql`delete from session where idle_timeout_s is not null`);
    const gone = new TestBrowser(server);
    gone.cookie = browser.cookie!.replace(/=kls_.*$/, `=${newSessionToken('user').token}`);
    expect((await gone.send({ method: 'DELETE', path: '/v1/session' })).status).toBe(200);
    expect(gone.cookie).toBeNull();
  });
});

describe('the session of a browser', () => {
  test('lasts 30 days longer with each use, in the database and in the browser', async () => {
    const browser = await TestBrowser.signedIn(server, 'alice');
    const { session } = await whoIs(browser);
    await server.database.query(
      (sql) => sql`
        update session set expires_at = now() + interval '2 days', last_used_at = now() - interval '28 days'
        where id = ${session}`,
    );
    // The restart empties the cache of session look-ups.
    await server.restart();
    const again = new TestBrowser(server);
    again.cookie = browser.cookie;
    expect((await again.call('profile.show')).status).toBe(200);
    expect(await daysLeft(session)).toBeCloseTo(30, 1);
    expect(await whoIs(again)).toMatchObject({ session });
    expect(again.attributes).toContain('Max-Age=2592000');
  });

  test('is over after its time, and then counts as none: whoever has its cookie can sign in', async () => {
    const browser = await TestBrowser.signedIn(server, 'alice');
    const { session } = await whoIs(browser);
    await server.database.query((sql) => sql`update session set expires_at = now() where id = ${session}`);
    await server.restart();
    const again = new TestBrowser(server);
    again.cookie = browser.cookie;
    expect(await whoIs(again)).toEqual(NOBODY);
    expect(await again.call('profile.show')).toMatchObject({ status: 401, body: { code: 'unauthenticated' } });
    expect((await again.call('auth.start', { address: 'carol@example.org' })).status).toBe(200);
  });

  test('of a client with a token is as before: it lasts until somebody ends it', async () => {
    const { link } = await server.operate<{ link: string }>('accounts.invite', { user: 'alice' });
    const signedIn = await callAs(server, null, 'auth.verify', { link });
    const [row] = await server.database.query(
      (sql) => sql`select expires_at, idle_timeout_s from session where id = ${signedIn.session}`,
    );
    expect(row).toEqual({ expires_at: null, idle_timeout_s: null });
  });

  test('that was asked for an end has it, however much it is used, as a client with a token has', async () => {
    const makeLink = () => server.operate<{ link: string }>('accounts.invite', { user: 'alice' });
    const browser = new TestBrowser(server);
    const body = JSON.stringify({ link: (await makeLink()).link, expires_in_s: 3_600 });
    const { session } = (await browser.send({ path: '/v1/session', body })).body;
    const { link } = await makeLink();
    const client = await callAs(server, null, 'auth.verify', { link, expires_in_s: 7_200 });
    const ends = async (): Promise<unknown> =>
      (
        await server.database.query(
          (sql) => sql`
            select id, round(extract(epoch from expires_at - created_at)) as after_s, idle_timeout_s from session
            where id = any(${[session, client.session]}::bigint[]) order by id`,
        )
      ).map(({ after_s, idle_timeout_s }) => [Number(after_s), idle_timeout_s]);
    expect(await ends()).toEqual([
      [3_600, null],
      [7_200, null],
    ]);
    await server.database.query(
      (sql) => sql`
        update session set last_used_at = now() - interval '30 minutes'
        where id = any(${[session, client.session]}::bigint[])`,
    );
    // After the restart the server looks both sessions up, which counts as use.
    await server.restart();
    const again = new TestBrowser(server);
    again.cookie = browser.cookie;
    expect((await again.call('profile.show')).status).toBe(200);
    expect((await callAs(server, client, 'profile.show')).nick).toBe('alice');
    expect(await ends()).toEqual([
      [3_600, null],
      [7_200, null],
    ]);
  });

  test('that was asked for an end goes with the browser: its cookie is kept by no disk, and the page knows its end', async () => {
    const { link } = await server.operate<{ link: string }>('accounts.invite', { user: 'alice' });
    const browser = new TestBrowser(server);
    const body = JSON.stringify({ link, expires_in_s: 3_600 });
    const { expires_at: end, session } = (await browser.send({ path: '/v1/session', body })).body;
    expect(browser.attributes).toEqual(['Path=/', 'HttpOnly', 'SameSite=Strict']);
    expect((Date.parse(end) - Date.now()) / 60_000).toBeCloseTo(60, 0);
    const shown = await whoIs(browser);
    expect(shown.session).toBe(session);
    expect((Date.parse(shown.expires_at) - Date.parse(end)) / 60_000).toBeCloseTo(0, 0);
    expect(browser.attributes).toEqual(['Path=/', 'HttpOnly', 'SameSite=Strict']);
  });

  test('serves operations, files and resumable uploads', async () => {
    const browser = await TestBrowser.signedIn(server, 'alice');
    const stored = await browser.send({
      path: '/v1/files?name=a.txt',
      body: 'by cookie',
      headers: { 'content-type': 'text/plain' },
    });
    expect(stored.status).toBe(201);
    const path = `/v1/files/${stored.body.id}`;
    expect(await browser.send({ method: 'GET', path })).toMatchObject({ status: 200, text: 'by cookie' });
    const tus = { 'tus-resumable': '1.0.0' };
    const created = await browser.send({
      path: '/v1/files/uploads',
      headers: { ...tus, 'upload-length': '3', 'upload-metadata': 'filename YS50eHQ=' },
    });
    expect(created.status).toBe(201);
    const upload = `/v1/files/${created.headers.get('location')!.replace(/^.*uploads/, 'uploads')}`;
    const part = { ...tus, 'upload-offset': '0', 'content-type': 'application/offset+octet-stream' };
    expect((await browser.send({ method: 'PATCH', path: upload, headers: part, body: 'abc' })).status).toBe(204);
    expect((await browser.send({ method: 'HEAD', path: upload, headers: tus })).status).toBe(200);
  });

  test('and a token do not go together: the answer says so', async () => {
    const browser = await TestBrowser.signedIn(server, 'alice');
    const bob = await createPerson(server, 'bob2');
    const headers = { authorization: `Bearer ${bob.token}` };
    for (const path of ['/v1/api/profile.show', '/v1/session']) {
      const response = await browser.send({ path, headers, body: '{}' });
      expect([path, response.status, response.body.code]).toEqual([path, 400, 'invalid_input']);
    }
    expect(await callAs(server, bob, 'profile.show')).toMatchObject({ nick: 'bob2' });
  });
});

test('/v1/session has three methods', async () => {
  const response = await new TestBrowser(server).send({ method: 'PUT', path: '/v1/session' });
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, POST, DELETE, OPTIONS']);
});
