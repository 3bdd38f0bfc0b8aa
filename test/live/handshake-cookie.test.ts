import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { newSessionToken } from '../../src/operations/core/session-cache.ts';
import { OWN_ORIGIN, TestBrowser } from '../http/browser/cookies.ts';
import { eventually } from '../support/eventually.ts';
import { LiveFixture } from './fixture.ts';

const SESSION_ENDED = 4002;
const MISSING_TOKEN = /Give the token of a session/;

let live: LiveFixture;
let browser: TestBrowser;
beforeAll(async () => {
  live = await LiveFixture.start({
    live: { allowedLiveOrigins: ['*'] },
    limits: { unknownTokensPerSecondPerSource: 100_000 },
  });
  browser = await TestBrowser.signedIn(live.server, 'alice');
});
afterAll(() => live.stop());

const connect = (headers: Record<string, string>) => live.connect(live.urls[0], { headers });
const own = () => connect({ origin: OWN_ORIGIN, cookie: browser.cookie! });

describe('a page of the own origin', () => {
  test('says by its cookie who it is, and follows', async () => {
    const client = await own();
    expect(await client.call('live.authenticate', {})).toMatchObject({ account: { nick: 'alice', role: 'user' } });
    await client.call('live.subscribe');
    await live.post('to a browser');
    const message = await eventually(
      () => client.changes(live.group.id).at(-1)?.message?.text,
      (text) => text !== undefined,
    );
    expect(message).toBe('to a browser');
  });

  test('is nobody before it has said so', async () => {
    const client = await own();
    await expect(client.call('conversations.list')).rejects.toThrow('Sign in first');
  });

  test('may be somebody else by a token, which counts then', async () => {
    const client = await own();
    await live.server.operate('accounts.create', { nick: 'other' });
    const { link } = await live.server.operate<{ link: string }>('accounts.invite', { user: 'other' });
    const { token } = await client.call('auth.verify', { link });
    expect(await client.call('live.authenticate', { token })).toMatchObject({ account: { nick: 'other' } });
  });

  test('is cut off when it signs out', async () => {
    const leaving = await TestBrowser.signedIn(live.server, 'alice');
    const client = await connect({ origin: OWN_ORIGIN, cookie: leaving.cookie! });
    await client.call('live.authenticate', {});
    await leaving.send({ method: 'DELETE', path: '/v1/session' });
    await eventually(
      () => client.code,
      (code) => code === SESSION_ENDED,
    );
  });

  test('with a cookie that holds nothing is refused, and ended after five attempts as with any token', async () => {
    const cookie = browser.cookie!.replace(/=.*$/, `=${newSessionToken('user').token}`);
    const client = await connect({ origin: OWN_ORIGIN, cookie });
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      const { error } = await client.request('live.authenticate');
      expect(error?.data?.code).toBe('unauthenticated');
    }
    await eventually(
      () => client.code,
      (code) => code === 4001,
    );
  });
});

describe('the cookie does not count', () => {
  test.each<[string, Record<string, string>]>([
    ['of a page of another site, which live.origins lets connect', { origin: 'https://evil.example' }],
    ['of a page of a subdomain', { origin: 'http://app.klatch.example' }],
    ['of a page of another port', { origin: 'http://klatch.example:8080' }],
    ['of a page that hides where it is', { origin: 'null' }],
    ['of a program, which sends no Origin', {}],
  ])('%s', async (_, headers) => {
    const client = await connect({ ...headers, cookie: browser.cookie! });
    await expect(client.call('live.authenticate', {})).rejects.toThrow(MISSING_TOKEN);
    // With a token the client can still authenticate.
    expect(await client.call('live.authenticate', { token: live.alice.token })).toMatchObject({
      account: { nick: 'alice' },
    });
  });

  test('on a plain TCP connection, which has none', async () => {
    const client = await live.connect(live.urls[2]);
    await expect(client.call('live.authenticate', {})).rejects.toThrow(MISSING_TOKEN);
  });
});
