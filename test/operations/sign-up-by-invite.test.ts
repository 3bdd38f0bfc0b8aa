import { afterEach, describe, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import type { ConfigChanges } from '../support/config.ts';
import { TestMailServer } from '../support/mail-server.ts';
import { createPerson } from '../support/people.ts';
import { TestServer } from '../support/server.ts';

let server: TestServer;
afterEach(async () => server.stop());

async function startServer(changes: ConfigChanges = {}): Promise<void> {
  server = await TestServer.start({ limits: { unknownTokensPerSecondPerSource: 100_000 }, ...changes });
}

async function createInvite(more: object = {}): Promise<{ group: number; link: string }> {
  const { id: group } = await server.createGroup('Invited');
  const { link } = await server.operate<{ link: string }>('invites.create', { group, ...more });
  return { group, link };
}

const signUp = (nick: string, more: object = {}) => callAs(server, null, 'auth.sign-up', { nick, ...more });
const accountsNamed = (pattern: string) =>
  server.database.query((sql) => sql`select nick from account where nick like ${pattern}`);

describe('where the server sends no codes, an invitation alone', () => {
  test('creates an account, signs it in and makes it a member', async () => {
    await startServer();
    const { group, link } = await createInvite();
    const alice = await signUp('Alice', { invite: link, name: 'Alice Example', label: 'phone' });
    expect(alice).toMatchObject({
      status: 'signed_in',
      token: expect.stringMatching(/^kls_/),
      account: { nick: 'alice', name: 'Alice Example', role: 'user' },
    });
    const { conversations } = await callAs(server, alice, 'conversations.list');
    expect(conversations).toEqual([expect.objectContaining({ id: group, role: 'member' })]);
    expect((await callAs(server, alice, 'profile.show')).addresses).toEqual([]);
  });

  test('creates as many accounts as it has uses, also at once', async () => {
    await startServer();
    const { link } = await createInvite({ max_uses: 1 });
    const results = await Promise.allSettled(['guest1', 'guest2'].map((nick) => signUp(nick, { invite: link })));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(results.find((result) => result.status === 'rejected')!.reason).toMatchObject({ code: 'invalid_invite' });
    expect(await accountsNamed('guest%')).toHaveLength(1);
  });

  test('is used by no sign-up that failed', async () => {
    await startServer();
    const { link } = await createInvite({ max_uses: 1 });
    await createPerson(server, 'taken');
    await expect(signUp('taken', { invite: link })).rejects.toMatchObject({ code: 'nick_taken', status: 409 });
    await signUp('free', { invite: link });
  });

  test('that is none tells nothing of the nicks that are taken, and leaves no account', async () => {
    await startServer();
    await createPerson(server, 'taken');
    for (const nick of ['taken', 'free']) {
      const call = signUp(nick, { invite: 'x'.repeat(43) });
      await expect(call).rejects.toMatchObject({ code: 'invalid_invite', status: 410 });
    }
    expect(await accountsNamed('free')).toEqual([]);
  });

  test('is needed, whoever may sign up', async () => {
    await startServer({ registration: 'open' });
    await expect(signUp('alice')).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(/^invite: this server sends no codes/),
    });
  });

  test('creates at most so many accounts an hour for one network', async () => {
    await startServer({ limits: { codesPerSourcePerHour: 2 } });
    const { link } = await createInvite();
    await signUp('first', { invite: link });
    await signUp('second', { invite: link });
    await expect(signUp('third', { invite: link })).rejects.toMatchObject({
      code: 'rate_limited',
      message: expect.stringContaining('Too many accounts were created from your network'),
    });
  });

  test('creates none where only the administrator gives accounts', async () => {
    await startServer({ registration: 'closed' });
    const { link } = await createInvite();
    await expect(signUp('alice', { invite: link })).rejects.toMatchObject({ code: 'registration_closed' });
  });
});

test('where the server sends codes, an invitation alone creates no account', async () => {
  const mail = await TestMailServer.start();
  try {
    await startServer({ smtp: mail.config() });
    const { link } = await createInvite();
    await expect(signUp('alice', { invite: link })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(/^transaction: this server sends codes/),
    });
  } finally {
    await mail.stop();
  }
});
