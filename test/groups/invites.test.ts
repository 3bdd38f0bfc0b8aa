import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import { TestServer } from '../support/server.ts';
import { createGroup, createPeople, noticesIn, outcomesOf, rolesIn, type People } from './fixture.ts';

interface Invite {
  readonly id: number;
  readonly link: string;
}

let server: TestServer;
let people: People;
beforeAll(async () => {
  server = await TestServer.start({ limits: { invitesPerGroup: 3, unknownTokensPerSecondPerSource: 1_000 } });
  people = await createPeople(server, 'alice', 'bob', 'carol', 'dave', 'root');
});
afterAll(() => server.stop());

const as = (nick: string, name: string, input: object) => callAs(server, people[nick]!, name, input);
const refused = (code: string) => expect.objectContaining({ code }) as unknown as Error;
const invite = (group: number, input: object = {}): Promise<Invite> =>
  as('alice', 'invites.create', { group, ...input });
const endNow = ({ id }: Invite) =>
  server.database.query(
    (sql) => sql`update group_invite set expires_at = now() - interval '1 second' where id = ${id}`,
  );

describe('an invitation', () => {
  test('has a link that opens the group for whoever has it', async () => {
    const group = await createGroup(server, people['alice']!, { title: 'Inner circle' });
    const made = await invite(group, { max_uses: 5 });
    expect(made).toMatchObject({ group, created_by: 'alice', max_uses: 5, uses: 0 });
    expect(made.link).toMatch(/^http:\/\/klatch\.example\/v1\/groups\/invites\/[\w-]{43}$/);
    const joined = { group, title: 'Inner circle', joined: true };
    expect(await as('bob', 'groups.join', { invite: made.link })).toEqual(joined);
    expect(await as('carol', 'groups.join', { invite: made.link.split('/').at(-1) })).toEqual(joined);
    expect(await rolesIn(server, group)).toEqual({ alice: 'owner', bob: 'member', carol: 'member' });
    expect((await noticesIn(server, group)).at(-1)).toEqual({
      kind: 'joined',
      actor: 'carol',
      details: { account: people['carol']!.id, nick: 'carol' },
    });
    const { invites } = await as('alice', 'invites.list', { group });
    expect(invites).toEqual([{ ...made, uses: 2 }]);
  });

  test('is not used up by who is in the group already', async () => {
    const group = await createGroup(server, people['alice']!);
    const { link } = await invite(group, { max_uses: 1 });
    expect(await as('alice', 'groups.join', { invite: link })).toMatchObject({ joined: false });
    expect(await as('bob', 'groups.join', { invite: link })).toMatchObject({ joined: true });
    expect(await as('bob', 'groups.join', { group })).toMatchObject({ joined: false });
    await expect(as('carol', 'groups.join', { invite: link })).rejects.toEqual(refused('invalid_invite'));
  });

  test('lets in as many as it says, when more come at once', async () => {
    const group = await createGroup(server, people['alice']!);
    const { link } = await invite(group, { max_uses: 2 });
    const comers = ['bob', 'carol', 'dave', 'root'].map((nick) => as(nick, 'groups.join', { invite: link }));
    expect(await outcomesOf(comers)).toEqual({ done: 2, invalid_invite: 2 });
    expect(Object.keys(await rolesIn(server, group))).toHaveLength(3);
  });

  test('that is over, used up, revoked, or never was, reads the same', async () => {
    const group = await createGroup(server, people['alice']!);
    const dead = [await invite(group), await invite(group), await invite(group, { max_uses: 1 })];
    await endNow(dead[0]!);
    await as('alice', 'invites.revoke', { group, invite: dead[1]!.id });
    await as('bob', 'groups.join', { invite: dead[2]!.link });
    const never = 'A'.repeat(43);
    const links = [...dead.map(({ link }) => link), never, 'not-a-token', `${dead[0]!.link}/`, '\u2603'];
    for (const link of links) {
      for (const call of [
        as('carol', 'groups.join', { invite: link }),
        callAs(server, null, 'invites.preview', { invite: link }),
      ])
        await expect(call).rejects.toMatchObject({
          status: 410,
          code: 'invalid_invite',
          message: 'This invitation is no longer valid, or never existed: ask for a new one',
        });
    }
    expect(await as('alice', 'invites.list', { group })).toEqual({ invites: [], next: null });
    for (const { id } of dead)
      await expect(as('alice', 'invites.revoke', { group, invite: id })).rejects.toEqual(refused('invalid_invite'));
  });

  test("is revoked by its own group's admins alone", async () => {
    const [group, other] = [await createGroup(server, people['alice']!), await createGroup(server, people['bob']!)];
    const { id, link } = await invite(group);
    const foreign = as('bob', 'invites.revoke', { group: other, invite: id });
    await expect(foreign).rejects.toEqual(refused('invalid_invite'));
    expect(await as('carol', 'groups.join', { invite: link })).toMatchObject({ joined: true });
  });

  test('is no way back for who made it and was removed', async () => {
    const group = await createGroup(server, people['alice']!, { members: { bob: 'admin' } });
    const { link } = await as('bob', 'invites.create', { group });
    await as('alice', 'groups.remove-member', { group, user: 'bob' });
    await expect(as('bob', 'groups.join', { invite: link })).rejects.toEqual(refused('invalid_invite'));
  });

  test('into an archived group lets nobody in, and none can be made', async () => {
    const group = await createGroup(server, people['alice']!);
    const { link } = await invite(group);
    await as('alice', 'groups.archive', { group });
    await expect(as('bob', 'groups.join', { invite: link })).rejects.toEqual(refused('group_archived'));
    await expect(invite(group)).rejects.toEqual(refused('group_archived'));
    const preview = callAs(server, null, 'invites.preview', { invite: link });
    await expect(preview).rejects.toEqual(refused('invalid_invite'));
    await as('alice', 'groups.unarchive', { group });
    expect(await as('bob', 'groups.join', { invite: link })).toMatchObject({ joined: true });
  });

  test('is one of a bounded number that are open', async () => {
    const group = await createGroup(server, people['alice']!);
    expect(await outcomesOf(Array.from({ length: 5 }, () => invite(group)))).toEqual({ done: 3, quota_exceeded: 2 });
    const { invites } = await as('alice', 'invites.list', { group, limit: 2 });
    await endNow(invites[0]);
    await invite(group);
    const { next } = await as('alice', 'invites.list', { group, limit: 2 });
    const rest = await as('alice', 'invites.list', { group, limit: 2, after: next });
    expect([rest.invites.length, rest.next]).toEqual([1, null]);
    const [row] = await server.database.query(
      (sql) =>
        sql<{ count: number }[]>`select count(*)::int as count from group_invite where conversation_id = ${group}`,
    );
    expect(row!.count).toBe(3);
  });

  test.each([
    { valid_s: 59 },
    { valid_s: 400 * 86_400 },
    { valid_s: 3_600.5 },
    { max_uses: 0 },
    { max_uses: -1 },
    { max_uses: '3' },
    { uses: 1 },
  ])('is not made of %j', async (input) => {
    const group = await createGroup(server, people['alice']!);
    await expect(invite(group, input)).rejects.toEqual(refused('invalid_input'));
  });

  test('can hold for ever', async () => {
    const group = await createGroup(server, people['alice']!);
    expect(await invite(group, { valid_s: null })).toMatchObject({ expires_at: null, max_uses: null });
  });

  test('keeps its token out of the database', async () => {
    const group = await createGroup(server, people['alice']!);
    const { id, link } = await invite(group);
    const [row] = await server.database.query((sql) => sql`select * from group_invite where id = ${id}`);
    expect(JSON.stringify(row)).not.toContain(link.split('/').at(-1));
  });
});

describe('the preview', () => {
  test('of a public group names who invites, and of another one nobody', async () => {
    const group = await createGroup(server, people['alice']!, {
      title: 'Open',
      public: true,
      members: { bob: 'member' },
    });
    const { link } = await invite(group, { valid_s: null });
    const preview = () => callAs(server, null, 'invites.preview', { invite: link });
    const shown = { group: { title: 'Open', about: null, members: 2 }, invited_by: 'alice', expires_at: null };
    expect(await preview()).toEqual(shown);
    await as('alice', 'groups.update', { group, public: false });
    expect(await preview()).toEqual({ ...shown, invited_by: null });
  });
});

describe('public groups', () => {
  const find = async (input: object = {}): Promise<string[]> =>
    (await as('dave', 'groups.find', input)).groups.map(({ title }: { title: string }) => title);

  test('are found by a part of their title, taken literally, and no other groups are', async () => {
    for (const title of ['Köln 100%', 'köln under_score', 'Back\\slash', 'Zebra'])
      await createGroup(server, people['alice']!, { title, public: true });
    await createGroup(server, people['alice']!, { title: 'Köln in secret' });
    const archived = await createGroup(server, people['alice']!, { title: 'Köln of old', public: true });
    await as('alice', 'groups.archive', { group: archived });
    expect(await find({ text: 'KÖLN' })).toEqual(['Köln 100%', 'köln under_score']);
    expect(await find({ text: '%' })).toEqual(['Köln 100%']);
    expect(await find({ text: '_' })).toEqual(['köln under_score']);
    expect(await find({ text: '\\' })).toEqual(['Back\\slash']);
    expect(await find({ text: 'in secret' })).toEqual([]);
    await expect(find({ text: 'x'.repeat(201) })).rejects.toEqual(refused('invalid_input'));
  });

  test('come in pages, and the number of another group tells nothing of it', async () => {
    const all = await find();
    const seen: string[] = [];
    let after = 0;
    do {
      const page = await as('dave', 'groups.find', { limit: 2, after });
      seen.push(...page.groups.map(({ title }: { title: string }) => title));
      after = page.next;
    } while (after !== null);
    expect(seen).toEqual(all);
    const secret = await createGroup(server, people['alice']!, { title: 'A secret' });
    expect(await find({ after: secret })).toEqual([]);
    expect(await find({ after: 999_999 })).toEqual([]);
  });

  test('are joined by their number; of others nobody learns whether they exist', async () => {
    const group = await createGroup(server, people['alice']!, { title: 'Open', public: true });
    expect(await as('bob', 'groups.join', { group })).toEqual({ group, title: 'Open', joined: true });
    const found = await as('bob', 'groups.find', { text: 'open' });
    expect(found.groups).toContainEqual({ id: group, title: 'Open', about: null, members: 2, joined: true });
    const secret = await createGroup(server, people['alice']!);
    const { id: talk } = await as('alice', 'private.open', { user: 'carol' });
    for (const number of [secret, talk, 999_999])
      await expect(as('bob', 'groups.join', { group: number })).rejects.toMatchObject({
        code: 'not_found',
        message: `There is no group ${number}: look at the list of groups`,
      });
    for (const input of [{}, { group, invite: 'x' }, { group: 'Open' }])
      await expect(as('bob', 'groups.join', input)).rejects.toEqual(refused('invalid_input'));
  });

  test('are joined by one person at many places at once, once', async () => {
    const group = await createGroup(server, people['alice']!, { public: true });
    const calls = await Promise.all(Array.from({ length: 6 }, () => as('bob', 'groups.join', { group })));
    expect(calls.filter(({ joined }) => joined)).toHaveLength(1);
    expect(await noticesIn(server, group)).toHaveLength(2);
  });
});
