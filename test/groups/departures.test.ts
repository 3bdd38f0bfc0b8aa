import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { scopes } from '../../src/model/scopes.ts';
import { callAs } from '../support/call.ts';
import { signIn, type TestPerson } from '../support/people.ts';
import { postJson, TestServer } from '../support/server.ts';
import { createGroup, createPeople, noticesIn, rolesIn, type People } from './fixture.ts';

let server: TestServer;
let people: People;
let group: number;
let bots = 0;
beforeAll(async () => {
  server = await TestServer.start();
  people = await createPeople(server, 'alice', 'bob', 'carol', 'dave', 'root');
});
afterAll(() => server.stop());
beforeEach(async () => {
  group = await createGroup(server, people['alice']!, { members: { bob: 'admin', carol: 'admin', dave: 'member' } });
});

const as = (nick: string, name: string, input: object = {}) => callAs(server, people[nick]!, name, input);
const refused = (code: string) => expect.objectContaining({ code }) as unknown as Error;

/** Adds a bot with every scope to the group. Its owner is the account of this nick. */
async function botOf(nick: string, role: 'admin' | 'member' = 'member'): Promise<{ nick: string; token: string }> {
  const bot = `${nick}-bot-${(bots += 1)}`;
  const { id } = await as(nick, 'bots.create', { nick: bot });
  await as('alice', 'groups.add-member', { group, user: bot, role });
  return { nick: bot, token: (await signIn(server, id, scopes)).token };
}

const linkBy = async (nick: string): Promise<{ id: number; link: string }> => as(nick, 'invites.create', { group });
const join = (person: Pick<TestPerson, 'token'>, link: string) =>
  callAs(server, person, 'groups.join', { invite: link });
const tokenOf = async (nick: string): Promise<string> => (await as(nick, 'groups.show-token', { group })).token;
const post = async (token: string): Promise<number> =>
  (await postJson(`${server.url}/v1/webhooks/${token}`, { text: 'x' })).status;
const lastNotices = async (count: number) => (await noticesIn(server, group)).slice(-count);

/** The three ways to lose the rights of an admin, each applied to Bob. */
const WAYS = {
  removal: (more: object = {}) => as('alice', 'groups.remove-member', { group, user: 'bob', ...more }),
  leaving: (more: object = {}) => as('bob', 'groups.leave', { group, ...more }),
  demotion: (more: object = {}) => as('alice', 'groups.set-role', { group, user: 'bob', role: 'member', ...more }),
  'demotion by add-member': (more: object = {}) =>
    as('alice', 'groups.add-member', { group, user: 'bob', role: 'member', ...more }),
} as const;
const ways = Object.entries(WAYS).map(([way, go]) => ({ way, go }));

describe.each(ways)('$way of an admin', ({ way, go }) => {
  test('ends the invitations of the admin and of its bots, and no others', async () => {
    const bot = await botOf('bob', 'admin');
    const own = await linkBy('bob');
    const { link: botLink } = await callAs(server, bot, 'invites.create', { group });
    const other = await linkBy('carol');
    expect(await go()).toMatchObject({ invites_ended: 2, invites_seen: [other.id], bots: [bot.nick] });
    const fresh = (await createPeople(server, `fresh-${(bots += 1)}`))[`fresh-${bots}`]!;
    for (const link of [own.link, botLink]) {
      await expect(join(fresh, link)).rejects.toEqual(refused('invalid_invite'));
      await expect(callAs(server, null, 'invites.preview', { invite: link })).rejects.toEqual(
        refused('invalid_invite'),
      );
    }
    expect(await join(fresh, other.link)).toMatchObject({ joined: true });
  });

  test('says that the token was seen, in the answer and in the notice', async () => {
    await linkBy('alice');
    const { id: hook } = await as('bob', 'hooks.create', { group, url: 'https://receiver.example/' });
    const token = await tokenOf('bob');
    expect(await go()).toMatchObject({ token: 'seen', hooks: [hook] });
    expect(await lastNotices(1)).toMatchObject([{ details: { nick: 'bob', token: 'seen', invites_seen: 1 } }]);
    expect(await post(token)).toBe(200);
  });

  test('replaces the token and revokes the invitations in the same call', async () => {
    const { link } = await linkBy('alice');
    const token = await tokenOf('bob');
    expect(await post(token)).toBe(200);
    const answer = await go({ rotate_token: true, revoke_invites: true });
    expect(answer).toMatchObject({ token: 'rotated', invites_seen: [], invites_ended: 1 });
    expect(JSON.stringify(answer)).not.toContain(await tokenOf('alice'));
    expect(await post(token)).toBe(404);
    expect(await post(await tokenOf('alice'))).toBe(200);
    expect(await lastNotices(2)).toMatchObject([
      { kind: 'token_rotated' },
      { details: { nick: 'bob', token: 'rotated' } },
    ]);
    await expect(as('dave', 'groups.info', { group })).resolves.toMatchObject({ id: group });
    const stranger = (await createPeople(server, `stranger-${(bots += 1)}`))[`stranger-${bots}`]!;
    await expect(join(stranger, link)).rejects.toEqual(refused('invalid_invite'));
  });

  test('takes the bots along', async () => {
    const [plain, admin] = [await botOf('bob'), await botOf('bob', 'admin')];
    const stays = await botOf('carol', 'admin');
    await go();
    const isDemotion = way.startsWith('demotion');
    expect(await rolesIn(server, group)).toEqual({
      alice: 'owner',
      carol: 'admin',
      dave: 'member',
      [stays.nick]: 'admin',
      ...(isDemotion ? { bob: 'member', [plain.nick]: 'member', [admin.nick]: 'member' } : {}),
    });
    for (const bot of [plain, admin]) {
      const history = callAs(server, bot, 'messages.history', { conversation: group });
      await (isDemotion
        ? expect(history).resolves.toBeDefined()
        : expect(history).rejects.toEqual(refused('not_found')));
      await expect(callAs(server, bot, 'groups.show-token', { group })).rejects.toEqual(
        refused(isDemotion ? 'forbidden' : 'not_found'),
      );
    }
    const named = isDemotion ? [admin.nick] : [plain.nick, admin.nick];
    expect(await lastNotices(named.length)).toMatchObject(
      named.map((nick) => ({ kind: isDemotion ? 'role' : 'removed', details: { nick } })),
    );
  });
});

describe('somebody who was removed', () => {
  test('does not come back by an invitation that was there, whoever made it; by a later one it does', async () => {
    const { link } = await linkBy('alice');
    const bot = await botOf('bob');
    await WAYS.removal();
    for (const person of [people['bob']!, bot]) {
      await expect(join(person, link)).rejects.toEqual(refused('invalid_invite'));
    }
    const own = await as('bob', 'bots.create', { nick: `late-bot-${(bots += 1)}` });
    const late = { token: (await signIn(server, own.id, scopes)).token };
    await expect(join(late, link)).rejects.toEqual(refused('invalid_invite'));
    const next = await linkBy('alice');
    expect(await join(people['bob']!, next.link)).toMatchObject({ joined: true });
    // The older invitation stays closed, even after Bob leaves.
    await as('bob', 'groups.leave', { group });
    await expect(join(people['bob']!, link)).rejects.toEqual(refused('invalid_invite'));
    expect(await join(people['bob']!, next.link)).toMatchObject({ joined: true });
  });

  test('is kept out by a removal that waits while the invitation is made', async () => {
    // Removal and creation both need the lock of the head. In either order, the link lets Bob in only if it was made
    // after the removal.
    const [removal, made] = await Promise.all([WAYS.removal(), linkBy('carol')]);
    const invites = (removal.invites_seen as number[]).includes(made.id);
    const back = await join(people['bob']!, made.link).catch(({ code }: { code: string }) => code);
    expect(back).toEqual(invites ? 'invalid_invite' : expect.objectContaining({ joined: true }));
  });

  test('was an admin before: the token is still called seen, until it is replaced', async () => {
    await WAYS.demotion();
    expect(await WAYS.removal()).toMatchObject({ token: 'seen' });
    await as('alice', 'groups.add-member', { group, user: 'bob', role: 'admin' });
    await WAYS.demotion();
    await as('alice', 'groups.rotate-token', { group });
    expect(await WAYS.removal()).toMatchObject({ token: 'unseen' });
    expect(await as('alice', 'groups.remove-member', { group, user: 'dave' })).toEqual({
      group,
      user: 'dave',
      bots: [],
      invites_ended: 0,
      invites_seen: [],
      hooks: [],
      token: 'unseen',
    });
  });

  test('and whose bot is above the caller is removed by the owner alone', async () => {
    await botOf('dave', 'admin');
    await expect(as('carol', 'groups.remove-member', { group, user: 'dave' })).rejects.toEqual(refused('forbidden'));
    expect(await as('alice', 'groups.remove-member', { group, user: 'dave' })).toMatchObject({ token: 'seen' });
  });
});

describe('what goes with a departure', () => {
  test('an owner does not leave through a bot that owns the group', async () => {
    const bot = await botOf('alice');
    await as('alice', 'groups.transfer', { group, user: bot.nick });
    await expect(as('alice', 'groups.leave', { group })).rejects.toEqual(refused('last_owner'));
  });

  test('a member asks for no new token, and a call that takes no rights refuses to', async () => {
    await expect(as('dave', 'groups.leave', { group, rotate_token: true })).rejects.toEqual(refused('forbidden'));
    await expect(as('dave', 'groups.leave', { group, revoke_invites: true })).rejects.toEqual(refused('forbidden'));
    const promotion = { group, user: 'dave', role: 'admin', rotate_token: true };
    await expect(as('alice', 'groups.set-role', promotion)).rejects.toEqual(refused('invalid_input'));
    await expect(as('alice', 'groups.add-member', promotion)).rejects.toEqual(refused('invalid_input'));
    expect(await rolesIn(server, group)).toMatchObject({ dave: 'member' });
  });

  test("a bot without the scope for hooks replaces no token by somebody's removal", async () => {
    const token = (await signIn(server, people['carol']!.id, ['groups:write'])).token;
    const remove = (more: object) =>
      callAs(server, { token }, 'groups.remove-member', { group, user: 'dave', ...more });
    await expect(remove({ rotate_token: true })).rejects.toEqual(refused('missing_scope'));
    expect(await remove({})).toMatchObject({ user: 'dave' });
  });

  test('a deactivated account has no open invitations', async () => {
    const maker = (await createPeople(server, `maker-${(bots += 1)}`))[`maker-${bots}`]!;
    await as('alice', 'groups.add-member', { group, user: maker.nick, role: 'admin' });
    const { link } = await callAs(server, maker, 'invites.create', { group });
    await server.operate('accounts.deactivate', { user: maker.nick });
    await expect(callAs(server, null, 'invites.preview', { invite: link })).rejects.toEqual(refused('invalid_invite'));
  });

  test('an administrator of the installation makes invitations without being a member', async () => {
    const { link } = await as('root', 'invites.create', { group });
    const guest = (await createPeople(server, `guest-${(bots += 1)}`))[`guest-${bots}`]!;
    expect(await join(guest, link)).toMatchObject({ joined: true });
  });
});
