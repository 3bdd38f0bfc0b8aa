import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import { TestServer } from '../support/server.ts';
import { createGroup, createPeople, noticesIn, outcomesOf, type People } from './fixture.ts';

const ROOM = 12;
let server: TestServer;
let people: People;
beforeAll(async () => {
  server = await TestServer.start({ limits: { createdOrJoinedConversationsPerUser: ROOM } });
  people = await createPeople(server, 'alice', 'bob', 'carol', 'dave', 'root');
});
afterAll(() => server.stop());

const as = (nick: string, name: string, input: object = {}) => callAs(server, people[nick]!, name, input);
const refused = (code: string) => expect.objectContaining({ code }) as unknown as Error;
const open = (nick: string, user: string | number) => as(nick, 'private.open', { user });

describe('a private conversation', () => {
  test('is the same one for both of its two, and shows each the other', async () => {
    const mine = await open('alice', 'BOB');
    expect(mine).toMatchObject({
      kind: 'private',
      title: 'bob',
      about: null,
      public: false,
      archived: false,
      role: 'member',
      members: 2,
      peer: { id: people['bob']!.id, nick: 'bob', name: 'bob', kind: 'user' },
      last_seq: 0,
      last_rev: 1,
      last_at: null,
      unread: 0,
      unread_mentions: 0,
    });
    expect(await open('alice', people['bob']!.id)).toEqual(mine);
    expect(await open('bob', 'alice')).toMatchObject({ id: mine.id, title: 'alice', peer: { nick: 'alice' } });
    expect(await as('bob', 'conversations.show', { conversation: mine.id })).toMatchObject({ peer: { nick: 'alice' } });
    expect(await noticesIn(server, mine.id)).toEqual([{ kind: 'created', actor: 'alice', details: {} }]);
  });

  test('is one, however many open it at once from both sides', async () => {
    const opened = await Promise.all(
      Array.from({ length: 10 }, (_, i) => (i % 2 === 0 ? open('carol', 'dave') : open('dave', 'carol'))),
    );
    expect(new Set(opened.map(({ id }) => id)).size).toBe(1);
    expect(await noticesIn(server, opened[0].id)).toHaveLength(1);
  });

  test('is with somebody else, who is there and not deactivated', async () => {
    await expect(open('alice', 'alice')).rejects.toEqual(refused('invalid_input'));
    const { gone } = await createPeople(server, 'gone');
    await open('alice', 'gone');
    await server.database.query((sql) => sql`update account set deactivated_at = now() where id = ${gone!.id}`);
    const group = await createGroup(server, people['carol']!);
    const [row] = await server.database.query(
      (sql) => sql<{ id: number }[]>`select account_id as id from integration where conversation_id = ${group}`,
    );
    for (const user of ['gone', gone!.id, 'nobody-at-all', 999_999, row!.id])
      await expect(open('alice', user)).rejects.toEqual(refused('not_found'));
  });

  test('is not opened past a block, in whichever direction', async () => {
    const { eve } = await createPeople(server, 'eve');
    await server.database.query(
      (sql) => sql`insert into block (account_id, blocked_id) values (${eve!.id}, ${people['bob']!.id})`,
    );
    await expect(open('bob', 'eve')).rejects.toEqual(refused('blocked'));
    await expect(callAs(server, eve!, 'private.open', { user: 'bob' })).rejects.toEqual(refused('blocked'));
    await server.database.query((sql) => sql`delete from block`);
    expect(await open('bob', 'eve')).toMatchObject({ kind: 'private' });
  });

  test('is nothing to anybody else, an administrator included', async () => {
    const { id } = await open('alice', 'bob');
    for (const who of ['carol', 'root']) {
      await expect(as(who, 'conversations.show', { conversation: id })).rejects.toEqual(refused('not_found'));
      await expect(as(who, 'groups.info', { group: id })).rejects.toEqual(refused('not_found'));
      await expect(as(who, 'hooks.create', { group: id, url: 'https://example.org/' })).rejects.toEqual(
        refused('not_found'),
      );
    }
    await expect(server.operate('groups.info', { group: id })).rejects.toThrow(`There is no group ${id}`);
    await expect(server.operate('groups.show-token', { group: id })).rejects.toThrow(`There is no group ${id}`);
    await expect(server.operate('groups.archive', { group: id })).rejects.toThrow(`There is no group ${id}`);
  });

  test('counts among the conversations that an account may be in, on both sides', async () => {
    const { full, other } = await createPeople(server, 'full', 'other');
    const made = Array.from({ length: ROOM }, () => createGroup(server, full!));
    expect(await outcomesOf(made)).toEqual({ done: ROOM });
    await expect(callAs(server, full!, 'private.open', { user: 'other' })).rejects.toEqual(refused('quota_exceeded'));
    await expect(callAs(server, other!, 'private.open', { user: 'full' })).rejects.toEqual(refused('quota_exceeded'));
  });
});

describe('reverse webhooks are for groups only', () => {
  const sentence =
    'Integration tokens and reverse webhooks are for groups only: a private conversation has none and can get none';

  test.each([
    ['groups.info', {}],
    ['groups.update', { title: 'Ours' }],
    ['groups.members', {}],
    ['groups.add-member', { user: 'carol' }],
    ['groups.remove-member', { user: 'bob' }],
    ['groups.set-role', { user: 'bob', role: 'admin' }],
    ['groups.transfer', { user: 'bob' }],
    ['groups.leave', {}],
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
    ['expectations.set', { key: 'backup', within: '26h' }],
    ['expectations.list', {}],
    ['expectations.remove', { key: 'backup' }],
    ['hooks.create', { url: 'https://example.org/' }],
    ['hooks.list', {}],
  ])('says %s of a private conversation', async (name, input) => {
    const { id: group } = await open('alice', 'bob');
    await expect(as('alice', name, { group, ...input })).rejects.toMatchObject({
      code: 'not_a_group',
      message: sentence,
    });
  });

  test('says the database too, whoever writes into it', async () => {
    const { id } = await open('alice', 'bob');
    const group = await createGroup(server, people['dave']!);
    const refusedWith = async (code: string, write: Parameters<typeof server.database.query>[0]): Promise<void> => {
      await expect(server.database.query(write)).rejects.toMatchObject({ code });
    };
    const [FOREIGN_KEY, CHECK, UNIQUE] = ['23503', '23514', '23505'];
    const bob = people['bob']!.id;
    for (const kind of ['group', 'private']) {
      const code = kind === 'group' ? FOREIGN_KEY : CHECK;
      await refusedWith(
        code,
        (sql) => sql`
          insert into integration (conversation_id, kind, account_id, token_hash, token_sealed)
          values (${id}, ${kind}, ${bob}, ${'x'.repeat(64)}, 'x')`,
      );
      await refusedWith(
        code,
        (sql) => sql`
          insert into reverse_hook (conversation_id, kind, url, secret_sealed, start_seq, cursor)
          values (${id}, ${kind}, 'https://example.org/', 'x', 0, 0)`,
      );
      await refusedWith(
        code,
        (sql) => sql`
          insert into group_invite (conversation_id, kind, token_hash, token_sealed)
          values (${id}, ${kind}, ${'y'.repeat(64)}, 'y')`,
      );
    }
    // A private conversation can also not become a group by another statement, become public, or be moved below an
    // existing hook.
    await refusedWith(FOREIGN_KEY, (sql) => sql`update conversation set kind = 'group', title = 'x' where id = ${id}`);
    await refusedWith(CHECK, (sql) => sql`update conversation set public = true where id = ${id}`);
    await refusedWith(
      FOREIGN_KEY,
      (sql) => sql`update integration set conversation_id = ${id} where conversation_id = ${group}`,
    );
    // Two people have at most one private conversation, and a person has none alone.
    const [low, high] = [people['alice']!.id, bob].sort((a, b) => a - b) as [number, number];
    await refusedWith(UNIQUE, async (sql) => {
      await sql.begin(async (tx) => {
        const [row] = await tx<{ id: number }[]>`insert into conversation (kind) values ('private') returning id`;
        await tx`insert into private_conversation (conversation_id, low_id, high_id) values (${row!.id}, ${low}, ${high})`;
      });
    });
    await refusedWith(CHECK, async (sql) => {
      await sql.begin(async (tx) => {
        const [row] = await tx<{ id: number }[]>`insert into conversation (kind) values ('private') returning id`;
        await tx`insert into private_conversation (conversation_id, low_id, high_id) values (${row!.id}, ${low}, ${low})`;
      });
    });
  });
});
