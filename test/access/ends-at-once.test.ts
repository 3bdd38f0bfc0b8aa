import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import { waitingSessions } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { TestServer } from '../support/server.ts';
import { Stage } from './stage.ts';
import type { Situation } from './situation.ts';

let stage: Stage;
let situation: Situation;
beforeAll(async () => {
  stage = await Stage.set();
});
beforeEach(async () => {
  situation = await stage.situation(null);
});
afterAll(() => stage.strike());

type Who = keyof Situation['people'];

// oxlint-disable-next-line typescript/no-explicit-any -- tests look into it freely
function call(who: Who, name: string, input: object = {}, server = stage.server): Promise<any> {
  return callAs(server, situation.people[who], name, input);
}

async function expectRefused(code: string, work: Promise<unknown>): Promise<void> {
  await expect(work).rejects.toMatchObject({ code });
}

const inGroup = (): { group: number } => ({ group: situation.group.id });
const inConversation = (): { conversation: number } => ({ conversation: situation.group.id });

/** Runs `work` while another session has the table locked. Resolves with its result. */
function whileLocked<T>(table: string, work: () => Promise<T>): Promise<T> {
  return stage.server.database.query((sql) =>
    sql.begin(async (tx) => {
      await tx`lock table ${tx(table)}`;
      return work();
    }),
  ) as Promise<T>;
}

describe('what somebody may no longer do ends with the answer that says so', () => {
  test('a member who was removed reads, finds, writes and sees nothing of the group', async () => {
    await situation.post('bystander', 'aardvark');
    await call('member', 'messages.history', inConversation());
    const found = async (): Promise<number> =>
      (await call('member', 'messages.search', { text: 'aardvark' })).messages.length as number;
    await eventually(found, (count) => count === 1);
    await call('admin', 'groups.remove-member', { ...inGroup(), user: situation.people.member.nick });
    for (const name of ['messages.history', 'conversations.show', 'presence.list', 'messages.typing']) {
      await expectRefused('not_found', call('member', name, inConversation()));
    }
    await expectRefused('not_found', call('member', 'conversations.sync', { ...inConversation(), after_rev: 0 }));
    await expectRefused('not_found', call('member', 'messages.send', { ...inConversation(), text: 'x' }));
    for (const name of ['groups.info', 'groups.members', 'groups.leave']) {
      await expectRefused('not_found', call('member', name, inGroup()));
    }
    expect(await found()).toBe(0);
    const { conversations } = await call('member', 'conversations.list');
    expect(conversations.map(({ id }: { id: number }) => id)).toEqual([situation.private]);
  });

  test('an admin who is one no longer has neither token nor hooks', async () => {
    await call('admin', 'groups.show-token', inGroup());
    await call('owner', 'groups.set-role', { ...inGroup(), user: situation.people.admin.nick, role: 'member' });
    for (const name of [
      'groups.show-token',
      'groups.rotate-token',
      'groups.show-incoming-secret',
      'hooks.list',
      'invites.list',
      'expectations.list',
    ]) {
      await expectRefused('forbidden', call('admin', name, inGroup()));
    }
    const info = await call('admin', 'groups.info', inGroup());
    expect(Object.keys(info)).not.toContain('webhook');
    expect(Object.keys(info)).not.toContain('hooks');
    expect(Object.keys(info)).not.toContain('expectations');
  });

  test.each([
    ['messages.history', 'message', {}],
    ['conversations.sync', 'message', { after_rev: 0 }],
    ['mentions.list', 'message', {}],
  ])('also what waits for its turn in the middle of %s', async (name, table, input) => {
    const { database } = stage.server;
    const asked = await whileLocked(table, async () => {
      const answer = call('member', name, { ...inConversation(), ...input }).catch((error: unknown) => error);
      await eventually(
        () => waitingSessions(database),
        (waiting) => waiting.length > 0,
      );
      await call('admin', 'groups.remove-member', { ...inGroup(), user: situation.people.member.nick });
      return [answer];
    });
    expect(await Promise.all(asked)).toEqual([expect.objectContaining({ code: 'not_found' })]);
  });

  test.each([
    ['groups.show-token', 'integration'],
    ['groups.show-incoming-secret', 'integration'],
    ['groups.info', 'integration'],
    ['expectations.list', 'expectation'],
  ])('also what admins alone may see that waits for its turn in %s', async (name, table) => {
    const { database } = stage.server;
    const asked = await whileLocked(table, async () => {
      const answer = call('admin', name, inGroup()).catch((error: unknown) => error);
      await eventually(
        () => waitingSessions(database),
        (waiting) => waiting.length > 0,
      );
      await call('owner', 'groups.set-role', { ...inGroup(), user: situation.people.admin.nick, role: 'member' });
      return [answer];
    });
    expect(await Promise.all(asked)).toEqual([expect.objectContaining({ code: 'forbidden' })]);
  });

  test('an administrator of the installation who is one no longer administers nothing', async () => {
    await call('administrator', 'accounts.list');
    await stage.server.operate('accounts.update', { user: situation.people.administrator.nick, admin: false });
    await expectRefused('forbidden', call('administrator', 'accounts.list'));
    await expectRefused('not_found', call('administrator', 'groups.show-token', inGroup()));
  });

  test('a session that was ended from another one, and all others at once', async () => {
    const { member } = situation.people;
    await call('member', 'profile.show');
    const second = await callAs(stage.server, null, 'auth.verify', {
      link: (await stage.server.operate<{ link: string }>('accounts.invite', { user: member.nick })).link,
    });
    await callAs(stage.server, second, 'sessions.end', { session: member.session });
    await expectRefused('unauthenticated', call('member', 'profile.show'));
    const third = await callAs(stage.server, null, 'auth.verify', {
      link: (await stage.server.operate<{ link: string }>('accounts.invite', { user: member.nick })).link,
    });
    expect(await callAs(stage.server, third, 'sessions.end-others')).toEqual({ ended: 1 });
    await expectRefused('unauthenticated', callAs(stage.server, second, 'profile.show'));
    await callAs(stage.server, third, 'profile.show');
  });

  test("a bot's token that was revoked, and every token of a bot that was removed", async () => {
    const { bot, unscoped } = situation.people;
    await call('bot', 'conversations.list');
    await call('owner', 'tokens.revoke', { bot: bot.nick, token: bot.session });
    await expectRefused('unauthenticated', call('bot', 'conversations.list'));
    const input = { bot: unscoped.nick, scopes: ['messages:read'], label: 'x' };
    const made = await call('owner', 'tokens.create', input);
    await callAs(stage.server, made, 'conversations.list');
    await call('owner', 'bots.remove', { bot: unscoped.nick });
    await expectRefused('unauthenticated', callAs(stage.server, made, 'conversations.list'));
    await expectRefused('unauthenticated', call('unscoped', 'conversations.list'));
  });

  test('a person who was deactivated, with the bots; who is activated again signs in again', async () => {
    await call('owner', 'profile.show');
    await call('bot', 'conversations.list');
    await call('administrator', 'accounts.deactivate', { user: situation.people.owner.nick });
    await expectRefused('unauthenticated', call('owner', 'profile.show'));
    await expectRefused('unauthenticated', call('bot', 'conversations.list'));
    await call('administrator', 'accounts.activate', { user: situation.people.owner.nick });
    await expectRefused('unauthenticated', call('owner', 'profile.show'));
    await expectRefused('unauthenticated', call('bot', 'conversations.list'));
  });

  test('private messages to somebody who blocks their sender', async () => {
    const message = { conversation: situation.private, text: 'x' };
    await call('member', 'messages.send', message);
    await call('owner', 'blocks.add', { user: situation.people.member.nick });
    await expectRefused('blocked', call('member', 'messages.send', message));
    await call('owner', 'blocks.remove', { user: situation.people.member.nick });
    await call('member', 'messages.send', message);
  });

  test('an invitation of somebody who was removed, or that was revoked', async () => {
    const made = await call('admin', 'invites.create', inGroup());
    const other = await call('owner', 'invites.create', inGroup());
    await call('owner', 'groups.remove-member', { ...inGroup(), user: situation.people.admin.nick });
    await expectRefused('invalid_invite', call('stranger', 'groups.join', { invite: made.link }));
    await expectRefused('invalid_invite', callAs(stage.server, null, 'invites.preview', { invite: made.link }));
    await call('owner', 'invites.revoke', { ...inGroup(), invite: other.id });
    await expectRefused('invalid_invite', call('stranger', 'groups.join', { invite: other.link }));
  });
});

describe('on another node of the same database', () => {
  let second: TestServer;
  beforeAll(async () => {
    second = await TestServer.start({}, { database: stage.server.database });
  });
  afterAll(() => second.stop());

  test('memberships hold at once, and the end of a session as soon as it hears of it', async () => {
    await call('member', 'messages.history', inConversation(), second);
    await call('admin', 'groups.remove-member', { ...inGroup(), user: situation.people.member.nick });
    await expectRefused('not_found', call('member', 'messages.history', inConversation(), second));
    await call('member', 'sessions.end', { session: situation.people.member.session });
    const outcome = (): Promise<string> =>
      call('member', 'profile.show', {}, second).then(
        () => 'yes',
        (error: { code: string }) => error.code,
      );
    await eventually(outcome, (code) => code === 'unauthenticated');
  });
});
