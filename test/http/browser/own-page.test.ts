import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createPerson } from '../../support/people.ts';
import { TestServer } from '../../support/server.ts';
import { request, type WireRequest } from '../wire.ts';
import { OWN_ORIGIN, TestBrowser } from './cookies.ts';

let server: TestServer;
let browser: TestBrowser;
beforeAll(async () => {
  // Even with the most open configuration, other pages must not be able to use the session cookie.
  server = await TestServer.start({ http: { cors: ['*'] }, live: { allowedLiveOrigins: ['*'] } });
  await createPerson(server, 'alice');
  browser = await TestBrowser.signedIn(server, 'alice');
});
afterAll(() => server.stop());

const PATH = '/v1/api/sessions.end-others';
const FORM = 'application/x-www-form-urlencoded';

/**
 * Requests that other pages can make a browser send with its cookies. Pages of other sites can do so only in a browser
 * that predates SameSite.
 */
const forged: Record<string, WireRequest> = {
  'a form of another site': { path: PATH, headers: { origin: 'https://evil.example', 'content-type': FORM }, body: '' },
  'a form with a text as JSON': {
    path: PATH,
    headers: { origin: 'https://evil.example', 'content-type': 'text/plain' },
    body: '{"a":"="}',
  },
  'a form of a page that hides where it is': {
    path: PATH,
    headers: { origin: 'null', 'content-type': FORM },
    body: '',
  },
  'a request without Origin': { path: PATH, headers: { 'content-type': FORM }, body: '' },
  'an empty body of no type': { path: PATH, headers: { origin: 'https://evil.example' } },
  'an empty body of JSON': {
    path: PATH,
    headers: { origin: 'https://evil.example', 'content-type': 'application/json' },
    body: '',
  },
  'fetch with no-cors': {
    path: PATH,
    headers: { origin: 'https://evil.example', 'content-type': 'text/plain', 'sec-fetch-mode': 'no-cors' },
    body: '{}',
  },
  'fetch with cors, which http.cors allows': {
    path: PATH,
    headers: { origin: 'https://evil.example', 'content-type': 'application/json' },
    body: '{}',
  },
  'a page of a subdomain': { path: PATH, headers: { origin: 'http://app.klatch.example' }, body: '{}' },
  'a page of the same host with TLS': { path: PATH, headers: { origin: 'https://klatch.example' }, body: '{}' },
  'a page of another port': { path: PATH, headers: { origin: 'http://klatch.example:8080' }, body: '{}' },
  'two origins': { path: PATH, headers: { origin: `${OWN_ORIGIN}, https://evil.example` }, body: '{}' },
  'an origin that begins as the own one': { path: PATH, headers: { origin: `${OWN_ORIGIN}.evil.example` }, body: '{}' },
  'a picture of another site': {
    method: 'GET',
    path: '/v1/files/0123456789abcdef0123456789abcdef',
    headers: { 'sec-fetch-site': 'cross-site' },
  },
  'a picture of a subdomain': {
    method: 'GET',
    path: '/v1/files/0123456789abcdef0123456789abcdef',
    headers: { 'sec-fetch-site': 'same-site' },
  },
  'a question of a subdomain': { method: 'GET', path: '/v1/session', headers: { 'sec-fetch-site': 'same-site' } },
  'a sign-out': { method: 'DELETE', path: '/v1/session', headers: { origin: 'https://evil.example' } },
  'a sign-in as somebody else': {
    path: '/v1/session',
    headers: { origin: 'https://evil.example', 'content-type': FORM },
    body: '{"link":"kll_x"}',
  },
  'an upload': { path: '/v1/files?name=a.txt', headers: { origin: 'https://evil.example' }, body: 'a' },
  'a resumable upload': {
    path: '/v1/files/uploads',
    headers: { origin: 'https://evil.example', 'tus-resumable': '1.0.0', 'upload-length': '1' },
  },
};

describe('the session cookie on a request that no page of the own origin sent', () => {
  test.each(Object.keys(forged))('does nothing: %s', async (name) => {
    const { headers, ...rest } = forged[name]!;
    const response = await request(server.port, { ...rest, headers: { ...headers, cookie: browser.cookie! } });
    expect([response.status, response.body]).toEqual([
      403,
      {
        message: `The session cookie is for pages of ${OWN_ORIGIN} (http.base-uri), and this request comes from elsewhere: open Klatch there`,
        code: 'forbidden',
      },
    ]);
    expect(response.headers.has('set-cookie')).toBe(false);
    expect(response.headers.has('access-control-allow-credentials')).toBe(false);
  });

  test('signs nobody in who brings no cookie either', async () => {
    const headers = { origin: 'https://evil.example', 'content-type': FORM };
    const { link } = await server.operate<{ link: string }>('accounts.invite', { user: 'alice' });
    const body = JSON.stringify({ link });
    expect(await request(server.port, { path: '/v1/session', headers, body })).toMatchObject({ status: 403 });
    // The sign-in link still works after the refused requests.
    expect((await new TestBrowser(server).send({ path: '/v1/session', body })).status).toBe(200);
  });
});

describe('a page of the own origin', () => {
  test.each<[string, WireRequest]>([
    ['asks for JSON', { path: '/v1/api/profile.show', headers: { origin: OWN_ORIGIN }, body: '{}' }],
    ['asks with nothing', { path: '/v1/api/profile.show', headers: { origin: OWN_ORIGIN } }],
    ['looks', { method: 'GET', path: '/v1/session', headers: { 'sec-fetch-site': 'same-origin' } }],
    [
      'looks, typed into the address bar',
      { method: 'GET', path: '/v1/session', headers: { 'sec-fetch-site': 'none' } },
    ],
    ['looks, without fetch metadata', { method: 'GET', path: '/v1/session' }],
  ])('%s', async (_, { headers, ...rest }) => {
    const response = await request(server.port, { ...rest, headers: { ...headers, cookie: browser.cookie! } });
    expect(response.status).toBe(200);
    expect(response.text).toContain('alice');
  });

  test('of another origin calls with a token and without the cookie, as http.cors lets it', async () => {
    const bob = await createPerson(server, 'bob');
    const headers = { origin: 'https://evil.example', authorization: `Bearer ${bob.token}` };
    const response = await request(server.port, { path: '/v1/api/profile.show', headers });
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([200, '*']);
  });
});
