import { afterEach, expect, test } from '@jest/globals';
import { newSessionToken } from '../../src/operations/core/session-cache.ts';
import { callAs } from '../support/call.ts';
import type { ConfigChanges } from '../support/config.ts';
import { createPerson, signIn } from '../support/people.ts';
import { TestServer } from '../support/server.ts';
import { scrape } from '../metrics/scrape.ts';
import { request, type WireResponse } from './wire.ts';

let server: TestServer;
afterEach(() => server.stop());

const start = async (limits: ConfigChanges['limits']): Promise<void> => {
  server = await TestServer.start({ limits: limits ?? {}, metrics: { metricsEnabled: true } });
};
const tooOften = { status: 429, code: 'rate_limited' };
const callApi = (authorization: string | null): Promise<WireResponse> => {
  const headers = authorization === null ? {} : { authorization };
  return request(server.port, { path: '/v1/api/accounts.list', headers });
};

test('a session that asks too often is told to wait, and no other one is', async () => {
  await start({ sessionRequestRate: 0.01, sessionRequestBurst: 2 });
  const admin = await createPerson(server, 'root', { admin: true });
  const other = await signIn(server, admin.id);
  for (let i = 0; i < 2; i += 1) await callAs(server, admin, 'accounts.list');
  await expect(callAs(server, admin, 'accounts.list')).rejects.toMatchObject(tooOften);
  const refused = await callApi(`Bearer ${admin.token}`);
  expect([refused.status, Number(refused.headers.get('retry-after'))]).toEqual([429, 5]);
  await callAs(server, other, 'accounts.list');
});

test('nobody asks as often as a session may from one address', async () => {
  await start({ sessionRequestRate: 0.01, sessionRequestBurst: 2 });
  for (const status of [401, 401, 429]) expect((await callApi(null)).status).toBe(status);
});

test('an address is one source, and so is the IPv6 network of one customer', async () => {
  server = await TestServer.start({
    limits: { sessionRequestRate: 0.01, sessionRequestBurst: 2 },
    http: { trustedProxies: ['127.0.0.1'] },
  });
  const from = async (source: string): Promise<number> => {
    const headers = { 'x-forwarded-for': source };
    return (await request(server.port, { path: '/v1/api/accounts.list', headers })).status;
  };
  for (const status of [401, 401, 429]) expect(await from('192.0.2.7')).toBe(status);
  for (const [host, status] of [401, 401, 429].entries()) expect(await from(`2001:db8:1:2::${host + 1}`)).toBe(status);
  expect(await from('2001:db8:1:3::1')).toBe(401);
});

test('an address that tries tokens is answered more and more slowly, and is seen in the metrics', async () => {
  await start({ unknownTokensPerSecondPerSource: 2 });
  const admin = await createPerson(server, 'root', { admin: true });
  const started = performance.now();
  // The server accepts 10 requests at once, and the rest at 2 a second.
  const tries = Array.from({ length: 18 }, () => callApi(`Bearer ${newSessionToken('user').token}`));
  const tried = Promise.all(tries);
  await Promise.race(tries);
  const other = callAs(server, admin, 'accounts.list').then(() => 'other');
  expect(await Promise.race([other, tried])).toBe('other');
  expect(new Set((await tried).map(({ status }) => status))).toEqual(new Set([401]));
  expect(performance.now() - started).toBeGreaterThan(3_800);
  const found = await scrape(server.metricsUrl);
  expect(found.value('klatch_unknown_session_tokens_total')).toBe(18);
  expect(found.value('klatch_http_errors_total', { code: 'unauthenticated' })).toBe(18);
  expect(found.value('klatch_http_requests_total', { route: 'api', status: '2xx' })).toBe(1);
});

test('an address that guesses invitations and sign-in links is answered more and more slowly', async () => {
  await start({ unknownTokensPerSecondPerSource: 10 });
  const guesses = Array.from({ length: 55 }, (_, i) => ({
    path: i % 2 === 0 ? '/v1/api/invites.preview' : '/v1/api/auth.verify',
    body: JSON.stringify(i % 2 === 0 ? { invite: 'x'.repeat(43) } : { link: `kll_${'x'.repeat(43)}` }),
  }));
  const started = performance.now();
  const headers = { 'content-type': 'application/json' };
  const responses = await Promise.all(guesses.map((guess) => request(server.port, { ...guess, headers })));
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([410]));
  expect(performance.now() - started).toBeGreaterThan(350);
  const found = await scrape(server.metricsUrl);
  expect(found.value('klatch_http_errors_total', { code: 'invalid_invite' })).toBe(28);
  expect(found.value('klatch_http_errors_total', { code: 'activation_expired' })).toBe(27);
});
