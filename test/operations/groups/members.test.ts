import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { callAs } from '../../support/call.ts';
import { createPerson } from '../../support/people.ts';
import { TestServer, type TestGroup } from '../../support/server.ts';

interface UserList {
  readonly users: readonly { nick: string; role: string; groups: number; group_role: string | null }[];
  readonly next: string | null;
}

let server: TestServer;
let group: TestGroup;
beforeAll(async () => {
  server = await TestServer.start();
  group = await server.createGroup('Operations');
  for (const nick of ['dora', 'alice', 'carl', 'bob'])
    await server.operate('accounts.create', { nick, admin: nick === 'bob' });
});
afterAll(() => server.stop());

const list = (input: unknown = {}): Promise<UserList> => server.operate('accounts.list', input);
const nicks = async (input: unknown = {}): Promise<string[]> => (await list(input)).users.map(({ nick }) => nick);
const put = (user: string, role?: string) =>
  server.operate('groups.add-member', { group: 'Operations', user, ...(role === undefined ? {} : { role }) });

describe('the members of a group', () => {
  test('are added once, with the role that is asked for, and keep it when none is', async () => {
    expect(await put('alice')).toEqual({ group: group.id, user: 'alice', role: 'member', added: true });
    expect(await put('ALICE', 'owner')).toEqual({ group: group.id, user: 'alice', role: 'owner', added: false });
    expect(await put('alice')).toEqual({ group: group.id, user: 'alice', role: 'owner', added: false });
    await expect(put('alice', 'member')).rejects.toThrow('A group has an owner: hand it over');
    expect(await server.operate('groups.info', { group: group.id })).toMatchObject({ members: 1 });
  });

  test('are listed with their role there, and leave', async () => {
    await put('carl', 'admin');
    const { users } = await list({ group: group.id });
    expect(users).toEqual([
      expect.objectContaining({ nick: 'alice', group_role: 'owner', groups: 1 }),
      expect.objectContaining({ nick: 'carl', group_role: 'admin', groups: 1 }),
    ]);
    await server.operate('groups.remove-member', { group: group.id, user: 'carl' });
    expect(await nicks({ group: group.id })).toEqual(['alice']);
    await expect(server.operate('groups.remove-member', { group: group.id, user: 'carl' })).rejects.toThrow(
      `carl is not a member of group ${group.id}: look at the list of its members`,
    );
  });

  test('are accounts that exist, in groups that exist', async () => {
    await expect(put('nobody')).rejects.toThrow('There is no user with the nick nobody');
    await expect(server.operate('groups.add-member', { group: 'Nowhere', user: 'alice' })).rejects.toThrow(
      'There is no group Nowhere',
    );
    await expect(put('alice', 'king')).rejects.toThrow(/^role: /);
  });

  test('are made by many at once without an error', async () => {
    const results = await Promise.all(Array.from({ length: 8 }, () => put('dora')));
    expect(results.filter((result) => (result as { added: boolean }).added)).toHaveLength(1);
    await server.operate('groups.remove-member', { group: group.id, user: 'dora' });
  });
});

describe('the list of accounts', () => {
  test('has people by nick, without the integrations of groups', async () => {
    expect(await nicks()).toEqual(['alice', 'bob', 'carl', 'dora']);
    expect(await nicks({ role: 'admin' })).toEqual(['bob']);
    expect((await list({ group: group.id })).users.every(({ group_role }) => group_role !== null)).toBe(true);
    expect((await list()).users.every(({ group_role }) => group_role === null)).toBe(true);
  });

  test('comes in pages, the last of which says that it is the last', async () => {
    const pages: string[][] = [];
    let after: string | null = '';
    while (after !== null) {
      const page: UserList = await list({ after, limit: 2 });
      pages.push(page.users.map(({ nick }) => nick));
      after = page.next;
    }
    expect(pages).toEqual([
      ['alice', 'bob'],
      ['carl', 'dora'],
    ]);
    await expect(list({ limit: 1_001 })).rejects.toThrow(/^limit: /);
    await expect(list({ limit: 0 })).rejects.toThrow(/^limit: /);
  });

  test('marks accounts that are deactivated', async () => {
    await server.operate('accounts.create', { nick: 'zoe' });
    await server.database.query((sql) => sql`update account set deactivated_at = now() where nick = 'zoe'`);
    expect((await list({ after: 'dora' })).users).toEqual([
      expect.objectContaining({ nick: 'zoe', deactivated: true }),
    ]);
    await expect(put('zoe')).rejects.toThrow('There is no user with the nick zoe');
  });

  test('counts the groups of an account, and not its private conversations', async () => {
    const erin = await createPerson(server, 'erin');
    await put('erin');
    await callAs(server, erin, 'private.open', { user: 'alice' });
    expect((await list({ after: 'dora', limit: 1 })).users).toEqual([
      expect.objectContaining({ nick: 'erin', groups: 1 }),
    ]);
  });
});
