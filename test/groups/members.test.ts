import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import { signIn } from '../support/people.ts';
import { TestServer } from '../support/server.ts';
import { createGroup, createPeople, noticesIn, outcomesOf, rolesIn, type People } from './fixture.ts';

let server: TestServer;
let people: People;
beforeAll(async () => {
  server = await TestServer.start({ limits: { membersPerGroup: 6, createdOrJoinedConversationsPerUser: 40 } });
  people = await createPeople(server, 'alice', 'bob', 'carol', 'dave', 'root');
});
afterAll(() => server.stop());

const as = (nick: string, name: string, input: object) => callAs(server, people[nick]!, name, input);
const refused = (code: string) => expect.objectContaining({ code }) as unknown as Error;

describe('who creates a group', () => {
  test('owns it and sees its integration', async () => {
    const info = await as('alice', 'groups.create', { title: 'Mine', about: ' What it is for ' });
    expect(info).toMatchObject({ title: 'Mine', about: 'What it is for', role: 'owner', members: 1, hooks: [] });
    expect(info.webhook).toMatch(/\/v1\/webhooks\/[\w-]{43}$/);
    expect(await noticesIn(server, info.id)).toEqual([{ kind: 'created', actor: 'alice', details: { title: 'Mine' } }]);
  });

  test('names no other owner, unless it is an administrator', async () => {
    await expect(as('alice', 'groups.create', { title: 'T', owner: 'bob' })).rejects.toEqual(refused('forbidden'));
    const { id, role } = await as('root', 'groups.create', { title: 'T', owner: 'bob' });
    expect([role, await rolesIn(server, id)]).toEqual([null, { bob: 'owner' }]);
    const own = await as('root', 'groups.create', { title: 'T' });
    expect([own.role, await rolesIn(server, own.id)]).toEqual(['owner', { root: 'owner' }]);
  });

  test.each([[''], ['   '], ['two\nlines'], ['x'.repeat(201)], [7]])('gives it a title, and not %j', async (title) => {
    await expect(as('alice', 'groups.create', { title })).rejects.toEqual(refused('invalid_input'));
  });
});

describe('a member', () => {
  test('sees the group and not its integration, in which no stranger sees anything', async () => {
    const group = await createGroup(server, people['alice']!, { members: { bob: 'member', carol: 'admin' } });
    const info = await as('bob', 'groups.info', { group });
    expect(info).toMatchObject({ id: group, role: 'member' });
    for (const key of ['webhook', 'addresses', 'hooks', 'refused_posts']) expect(Object.keys(info)).not.toContain(key);
    expect(await as('carol', 'groups.info', { group })).toMatchObject({ role: 'admin', hooks: [] });
    expect(await as('root', 'groups.info', { group })).toMatchObject({ role: null, hooks: [] });
    const message = `There is no group ${group}: look at the list of groups`;
    const absent = expect.objectContaining({ code: 'not_found', message });
    for (const name of [
      'groups.info',
      'groups.members',
      'groups.leave',
      'groups.show-token',
      'invites.list',
      'hooks.list',
    ])
      await expect(as('dave', name, { group })).rejects.toEqual(absent);
  });

  test('sees who is in it, a page at a time', async () => {
    const group = await createGroup(server, people['alice']!, { members: { bob: 'member', carol: 'admin' } });
    const first = await as('bob', 'groups.members', { group, limit: 2 });
    expect(first.members.map((m: { nick: string; role: string }) => [m.nick, m.role])).toEqual([
      ['alice', 'owner'],
      ['bob', 'member'],
    ]);
    const rest = await as('bob', 'groups.members', { group, limit: 2, after: first.next });
    expect(rest).toMatchObject({ members: [{ id: people['carol']!.id, nick: 'carol', kind: 'user' }], next: null });
  });

  test('manages nothing of it', async () => {
    const group = await createGroup(server, people['alice']!, { members: { bob: 'member', carol: 'member' } });
    const before = await noticesIn(server, group);
    for (const [name, input] of [
      ['groups.add-member', { user: 'dave' }],
      ['groups.add-member', { user: 'bob', role: 'admin' }],
      ['groups.remove-member', { user: 'carol' }],
      ['groups.update', { title: 'Theirs' }],
      ['groups.set-role', { user: 'bob', role: 'admin' }],
      ['groups.transfer', { user: 'bob' }],
      ['groups.archive', {}],
      ['groups.unarchive', {}],
      ['groups.show-token', {}],
      ['groups.rotate-token', {}],
      ['groups.show-incoming-secret', {}],
      ['groups.set-incoming-secret', {}],
      ['groups.remove-incoming-secret', {}],
      ['invites.create', {}],
      ['invites.list', {}],
      ['invites.revoke', { invite: 1 }],
      ['hooks.create', { url: 'https://example.org/' }],
      ['hooks.list', {}],
    ] as const)
      await expect(as('bob', name, { group, ...input })).rejects.toEqual(refused('forbidden'));
    expect(await noticesIn(server, group)).toEqual(before);
  });

  test('who was removed, or has left, is a stranger at once', async () => {
    const group = await createGroup(server, people['alice']!, { members: { bob: 'member', carol: 'member' } });
    await as('alice', 'groups.remove-member', { group, user: people['bob']!.id });
    await as('carol', 'groups.leave', { group });
    for (const who of ['bob', 'carol']) {
      await expect(as(who, 'groups.info', { group })).rejects.toEqual(refused('not_found'));
      await expect(as(who, 'conversations.show', { conversation: group })).rejects.toEqual(refused('not_found'));
      await expect(as(who, 'groups.leave', { group })).rejects.toEqual(refused('not_found'));
    }
    expect((await noticesIn(server, group)).slice(-2)).toEqual([
      { kind: 'removed', actor: 'alice', details: { account: people['bob']!.id, nick: 'bob' } },
      { kind: 'left', actor: 'carol', details: { account: people['carol']!.id, nick: 'carol' } },
    ]);
  });
});

describe('an admin', () => {
  test('adds and removes members, and no admins', async () => {
    const members = { bob: 'admin', carol: 'admin' } as const;
    const group = await createGroup(server, people['alice']!, { members });
    expect(await as('bob', 'groups.add-member', { group, user: 'DAVE' })).toMatchObject({
      role: 'member',
      added: true,
    });
    for (const input of [
      { user: 'dave', role: 'admin' },
      { user: 'dave', role: 'owner' },
      { user: 'carol', role: 'member' },
      { user: 'alice', role: 'member' },
      { user: 'bob', role: 'member' },
    ])
      await expect(as('bob', 'groups.add-member', { group, ...input })).rejects.toEqual(refused('forbidden'));
    for (const user of ['carol', 'alice', 'bob'])
      await expect(as('bob', 'groups.remove-member', { group, user })).rejects.toEqual(refused('forbidden'));
    await as('bob', 'groups.remove-member', { group, user: 'dave' });
    expect(await rolesIn(server, group)).toEqual({ alice: 'owner', bob: 'admin', carol: 'admin' });
  });

  test('does not change roles, hand the group over or archive it', async () => {
    const group = await createGroup(server, people['alice']!, { members: { bob: 'admin', carol: 'member' } });
    for (const [name, input] of [
      ['groups.set-role', { user: 'carol', role: 'admin' }],
      ['groups.transfer', { user: 'bob' }],
      ['groups.archive', {}],
    ] as const)
      await expect(as('bob', name, { group, ...input })).rejects.toEqual(refused('forbidden'));
  });

  test('adds nobody who has blocked them, is deactivated, or does not exist', async () => {
    const group = await createGroup(server, people['alice']!, { members: { bob: 'admin' } });
    const gone = await createPeople(server, 'gone');
    await server.database.query(async (sql) => {
      await sql`update account set deactivated_at = now() where id = ${gone['gone']!.id}`;
      await sql`insert into block (account_id, blocked_id) values (${people['carol']!.id}, ${people['bob']!.id})`;
    });
    try {
      await expect(as('bob', 'groups.add-member', { group, user: 'carol' })).rejects.toEqual(refused('blocked'));
      for (const user of ['gone', gone['gone']!.id, 'nobody-at-all', 999_999])
        await expect(as('bob', 'groups.add-member', { group, user })).rejects.toEqual(refused('not_found'));
      // Carol has blocked only Bob, so Alice may add her.
      expect(await as('alice', 'groups.add-member', { group, user: 'carol' })).toMatchObject({ added: true });
    } finally {
      await server.database.query((sql) => sql`delete from block`);
    }
  });

  test("adds no group's integration", async () => {
    const group = await createGroup(server, people['alice']!);
    const [row] = await server.database.query(
      (sql) => sql<{ id: number }[]>`select account_id as id from integration where conversation_id = ${group}`,
    );
    const input = { group, user: row!.id };
    await expect(as('alice', 'groups.add-member', input)).rejects.toEqual(refused('not_found'));
  });
});

describe('the owner', () => {
  test('makes admins of members and members of admins', async () => {
    const group = await createGroup(server, people['alice']!, { members: { bob: 'member' } });
    const set = (role: string) => as('alice', 'groups.set-role', { group, user: 'bob', role });
    expect(await set('admin')).toEqual({ group, user: 'bob', role: 'admin', changed: true });
    expect(await set('admin')).toMatchObject({ changed: false });
    expect(await set('member')).toMatchObject({ role: 'member', changed: true });
    await expect(set('owner')).rejects.toEqual(refused('invalid_input'));
    await expect(as('alice', 'groups.set-role', { group, user: 'alice', role: 'member' })).rejects.toEqual(
      refused('last_owner'),
    );
    await expect(as('alice', 'groups.set-role', { group, user: 'dave', role: 'admin' })).rejects.toEqual(
      refused('not_found'),
    );
    const roles = (await noticesIn(server, group)).slice(-2);
    expect(roles).toMatchObject([{ kind: 'role', details: { role: 'admin' } }, { details: { role: 'member' } }]);
  });

  test('hands the group over, and is an admin from then on', async () => {
    const group = await createGroup(server, people['alice']!, { members: { bob: 'member' } });
    await expect(as('alice', 'groups.transfer', { group, user: 'carol' })).rejects.toEqual(refused('not_found'));
    expect(await as('alice', 'groups.transfer', { group, user: 'alice' })).toMatchObject({ changed: false });
    expect(await as('alice', 'groups.transfer', { group, user: 'bob' })).toMatchObject({ owner: 'bob', changed: true });
    expect(await rolesIn(server, group)).toEqual({ alice: 'admin', bob: 'owner' });
    await expect(as('alice', 'groups.transfer', { group, user: 'alice' })).rejects.toEqual(refused('forbidden'));
  });

  test('leaves after handing it over or archiving it, and not before', async () => {
    const group = await createGroup(server, people['alice']!, { members: { bob: 'member' } });
    await expect(as('alice', 'groups.leave', { group })).rejects.toEqual(refused('last_owner'));
    await as('alice', 'groups.transfer', { group, user: 'bob' });
    await as('alice', 'groups.leave', { group });
    await as('bob', 'groups.archive', { group });
    await as('bob', 'groups.leave', { group });
    expect(await rolesIn(server, group)).toEqual({});
  });

  test('is one at most, whatever happens at once', async () => {
    const members = { bob: 'member', carol: 'member', dave: 'member' } as const;
    const group = await createGroup(server, people['alice']!, { members });
    const heirs = ['bob', 'carol', 'dave'].map((user) => as('alice', 'groups.transfer', { group, user }));
    expect(await outcomesOf(heirs)).toEqual({ done: 1, forbidden: 2 });
    const owners = Object.values(await rolesIn(server, group)).filter((role) => role === 'owner');
    expect(owners).toHaveLength(1);
    await server.operate('groups.add-member', { group, user: 'alice', role: 'owner' });
    expect((await rolesIn(server, group))['alice']).toBe('owner');
    expect(Object.values(await rolesIn(server, group)).filter((role) => role === 'owner')).toHaveLength(1);
    const insert = server.database.query(
      (sql) => sql`update membership set role = 'owner' where conversation_id = ${group}`,
    );
    await expect(insert).rejects.toMatchObject({ constraint_name: 'membership_owner' });
  });
});

describe('the title and what a group is about', () => {
  test('are changed by admins, with a notice for what really changed', async () => {
    const group = await createGroup(server, people['alice']!, { title: 'Old', members: { bob: 'admin' } });
    const update = (input: object) => as('bob', 'groups.update', { group, ...input });
    expect(await update({ title: 'New', about: 'Now', public: true })).toMatchObject({
      title: 'New',
      about: 'Now',
      public: true,
      changed: true,
    });
    expect(await update({ title: 'New', about: 'Now', public: true })).toMatchObject({ changed: false });
    expect(await update({ about: null, public: false })).toMatchObject({ about: null, public: false });
    await expect(update({})).rejects.toEqual(refused('invalid_input'));
    expect((await noticesIn(server, group)).slice(2)).toEqual([
      { kind: 'renamed', actor: 'bob', details: { title: 'New' } },
      { kind: 'described', actor: 'bob', details: {} },
      { kind: 'published', actor: 'bob', details: {} },
      { kind: 'described', actor: 'bob', details: {} },
      { kind: 'unpublished', actor: 'bob', details: {} },
    ]);
  });
});

describe('bounds', () => {
  test('hold for the members of a group, however many come at once', async () => {
    const more = await createPeople(server, ...Array.from({ length: 8 }, (_, i) => `extra-${i}`));
    const group = await createGroup(server, people['alice']!);
    const calls = Object.keys(more).map((user) => as('alice', 'groups.add-member', { group, user }));
    expect(await outcomesOf(calls)).toEqual({ done: 5, quota_exceeded: 3 });
  });

  test('hold for the groups of an account, made or come into at once', async () => {
    const { busy } = await createPeople(server, 'busy');
    const groups = await Promise.all(
      Array.from({ length: 3 }, () => createGroup(server, people['bob']!, { public: true })),
    );
    const made = Array.from({ length: 39 }, (_, i) => callAs(server, busy!, 'groups.create', { title: `${i}` }));
    const joined = groups.map((group) => callAs(server, busy!, 'groups.join', { group }));
    expect(await outcomesOf([...made, ...joined])).toEqual({ done: 40, quota_exceeded: 2 });
  });
});

describe('what others do to an account', () => {
  test('uses up nothing of what the account may create, join and open', async () => {
    const { victim } = await createPeople(server, 'victim');
    for (let each = 0; each < 41; each += 1) {
      const group = await createGroup(server, people['dave']!, { members: { victim: 'member' } });
      // An archived group still counts towards the limit of its owner's groups, so the owner leaves it.
      if (each % 2 === 0) {
        await as('dave', 'groups.archive', { group });
        await as('dave', 'groups.leave', { group });
      }
    }
    const made = Array.from({ length: 41 }, (_, each) =>
      callAs(server, victim!, 'groups.create', { title: `${each}` }),
    );
    expect(await outcomesOf(made)).toEqual({ done: 40, quota_exceeded: 1 });
  });

  test('has a bound of its own', async () => {
    const limits = { createdOrJoinedConversationsPerUser: 1 };
    const small = await TestServer.start({ limits });
    try {
      const owners = Array.from({ length: 11 }, (_, each) => `owner-${each}`);
      const all = await createPeople(small, 'popular', ...owners);
      const add = async (owner: string) => createGroup(small, all[owner]!, { members: { popular: 'member' } });
      for (const owner of owners.slice(0, 10)) await add(owner);
      await expect(add('owner-10')).rejects.toThrow(
        'Others have added popular to 10 groups already, as many as they may (10 times limits.groups-per-user): ' +
          'send an invitation instead',
      );
      await callAs(small, all['popular']!, 'groups.create', { title: 'Own' });
    } finally {
      await small.stop();
    }
  });

  test('an archived group counts for its owner alone', async () => {
    const { collector, joiner } = await createPeople(server, 'collector', 'joiner');
    const groups: number[] = [];
    for (let each = 0; each < 40; each += 1) groups.push(await createGroup(server, collector!, { public: true }));
    for (const group of groups) await callAs(server, joiner!, 'groups.join', { group });
    const next = await createGroup(server, people['bob']!, { public: true });
    await expect(callAs(server, joiner!, 'groups.join', { group: next })).rejects.toEqual(refused('quota_exceeded'));
    await callAs(server, collector!, 'groups.archive', { group: groups[0] });
    expect(await callAs(server, joiner!, 'groups.join', { group: next })).toMatchObject({ joined: true });
    await expect(callAs(server, collector!, 'groups.join', { group: next })).rejects.toEqual(refused('quota_exceeded'));
  });
});

describe('a bot', () => {
  test('with the scope for groups, and without the one for hooks, sees no integration, not even of its own group', async () => {
    const bot = { token: (await signIn(server, people['dave']!.id, ['groups:read', 'groups:write'])).token };
    const info = await callAs(server, bot, 'groups.create', { title: "A bot's" });
    expect(info).toMatchObject({ role: 'owner' });
    expect(info).not.toHaveProperty('webhook');
    await expect(callAs(server, bot, 'groups.show-token', { group: info.id })).rejects.toEqual(
      refused('missing_scope'),
    );
    await expect(callAs(server, bot, 'conversations.list')).rejects.toEqual(refused('missing_scope'));
  });
});
