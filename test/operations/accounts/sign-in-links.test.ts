import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hashSessionToken } from '../../../src/operations/core/session-cache.ts';
import { findAndTouchSession } from '../../../src/storage/accounts/sessions.ts';
import { TestServer } from '../../support/server.ts';

interface Invited {
  readonly user: string;
  readonly link: string;
  readonly expires_at: string;
}
interface SignedIn {
  readonly status: string;
  readonly token: string;
  readonly session: number;
  readonly account: object;
}

const OVER = 'This sign-in link was used, has expired, or never existed: ask for a new one';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start({ limits: { sessionsPerUser: 3 } });
  await server.operate('accounts.create', { nick: 'alice', name: 'Alice Example', admin: true });
});
afterAll(() => server.stop());

const invite = (user = 'alice'): Promise<Invited> => server.operate('accounts.invite', { user });
const verify = (link: string, label?: string): Promise<SignedIn> =>
  server.operate('auth.verify', { link, ...(label === undefined ? {} : { label }) });
const holderOf = (token: string) => server.database.query((sql) => findAndTouchSession(sql, hashSessionToken(token)));

describe('a sign-in link', () => {
  test('makes a session of the person that it was made for', async () => {
    const { user, link, expires_at } = await invite('ALICE');
    expect(user).toBe('alice');
    expect(link).toMatch(/^http:\/\/klatch\.example\/v1\/sign-in#kll_[A-Za-z0-9_-]{43}$/);
    const hours = (Date.parse(expires_at) - Date.now()) / 3_600_000;
    expect(hours).toBeGreaterThan(23.9);
    expect(hours).toBeLessThan(24.1);
    const { token, session, account, status } = await verify(link, 'laptop');
    expect(status).toBe('signed_in');
    expect(token).toMatch(/^kls_[A-Za-z0-9_-]{43}$/);
    expect(account).toEqual({
      id: expect.any(Number),
      kind: 'user',
      nick: 'alice',
      name: 'Alice Example',
      role: 'admin',
    });
    expect(await holderOf(token)).toMatchObject({ id: session, nick: 'alice', scopes: null, expiresAt: null });
  });

  test('works as the token behind its # too, once', async () => {
    const { link } = await invite();
    const token = link.split('#')[1]!;
    await verify(`  ${token}\n`);
    await expect(verify(token)).rejects.toThrow(OVER);
    await expect(verify(link)).rejects.toThrow(OVER);
  });

  test('is good for one of many that open it at once', async () => {
    const { link } = await invite();
    const results = await Promise.allSettled(Array.from({ length: 16 }, () => verify(link)));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const result of results) if (result.status === 'rejected') expect(String(result.reason)).toContain(OVER);
  });

  test('ends when another one is made, and after its time', async () => {
    const [first, second] = [await invite(), await invite()];
    await expect(verify(first.link)).rejects.toThrow(OVER);
    await server.database.query((sql) => sql`update sign_in_link set expires_at = now() - interval '1 second'`);
    await expect(verify(second.link)).rejects.toThrow(OVER);
  });

  test('is nothing that can be guessed, and is kept as a hash alone', async () => {
    const { link } = await invite();
    const token = link.split('#')[1]!;
    const rows = await server.database.query(
      (sql) => sql<{ text: string }[]>`select l::text as text from sign_in_link l`,
    );
    expect(rows.map(({ text }) => text).join()).not.toContain(token.slice(4));
    for (const wrong of ['kll_short', `kll_${'A'.repeat(43)}`, 'http://klatch.example/v1/sign-in', "' or 1=1 --"]) {
      await expect(verify(wrong)).rejects.toThrow(OVER);
    }
    await expect(verify('')).rejects.toThrow(/^link: /);
    await expect(verify(link, 'a\nb')).rejects.toThrow('label: holds no control characters');
  });

  test('is made for active people alone', async () => {
    await expect(invite('nobody')).rejects.toThrow('There is no user with the nick nobody');
    await server.database.query(
      (sql) => sql`insert into account (kind, nick, name, role) values ('bot', 'robot', 'Robot', 'bot')`,
    );
    await expect(invite('robot')).rejects.toThrow('robot is a bot, and bots do not sign in');
    await server.operate('accounts.create', { nick: 'zoe' });
    const { link } = await invite('zoe');
    await server.database.query((sql) => sql`update account set deactivated_at = now() where nick = 'zoe'`);
    await expect(verify(link)).rejects.toThrow(OVER);
    await expect(invite('zoe')).rejects.toThrow('There is no user with the nick zoe');
  });
});

test('one session more than a person may have ends the one used longest ago', async () => {
  await server.operate('accounts.create', { nick: 'carl' });
  const made: SignedIn[] = [];
  for (let count = 0; count < 3; count += 1) made.push(await verify((await invite('carl')).link));
  const [first, second, third] = made as [SignedIn, SignedIn, SignedIn];
  await server.database.query(
    (sql) => sql`update session set last_used_at = now() - interval '1 hour' where id = ${second.session}`,
  );
  const fourth = await verify((await invite('carl')).link);
  expect(await holderOf(second.token)).toBeNull();
  for (const { token } of [first, third, fourth]) expect(await holderOf(token)).not.toBeNull();
});

test('a new session is not the one that is ended for it, whenever the others were used', async () => {
  await server.operate('accounts.create', { nick: 'dora' });
  for (let count = 0; count < 3; count += 1) await verify((await invite('dora')).link);
  // Makes the rows look as if the other sessions had been used after this sign-in began and before its turn.
  await server.database.query(
    (sql) => sql`
    update session set last_used_at = now() + interval '1 minute'
    where account_id = (select id from account where nick = 'dora')`,
  );
  const { token } = await verify((await invite('dora')).link);
  expect(await holderOf(token)).not.toBeNull();
});
