import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import { createPerson, signIn, type TestPerson } from '../support/people.ts';
import { TestServer } from '../support/server.ts';

let server: TestServer;
let alice: TestPerson;
let bob: TestPerson;
beforeAll(async () => {
  server = await TestServer.start({ limits: { botsPerUser: 2 } });
  alice = await createPerson(server, 'alice');
  bob = await createPerson(server, 'bob');
});
afterAll(() => server.stop());

const as = (person: { token: string }, name: string, input: object = {}) => callAs(server, person, name, input);
const linkFor = async (user: string): Promise<string> =>
  (await server.operate<{ link: string }>('accounts.invite', { user })).link;

describe('sessions', () => {
  test('are listed with the one that asks marked, and end one by one or all others at once', async () => {
    const person = await createPerson(server, 'many');
    const [second, third] = [await signIn(server, person.id), await signIn(server, person.id)];
    const { sessions, next } = await as(person, 'sessions.list');
    expect(next).toBeNull();
    expect(sessions).toEqual(
      [person.session, second.session, third.session].map((id) => ({
        id,
        label: 'test',
        scopes: null,
        created_at: expect.any(String),
        used_at: expect.any(String),
        expires_at: null,
        current: id === person.session,
        app_password: false,
      })),
    );
    expect((await as(person, 'sessions.list', { limit: 2 })).next).toBe(second.session);
    await as(second, 'profile.show');
    expect(await as(person, 'sessions.end', { session: second.session })).toEqual({ session: second.session });
    await expect(as(second, 'profile.show')).rejects.toMatchObject({ code: 'unauthenticated' });
    expect(await as(person, 'sessions.end-others')).toEqual({ ended: 1 });
    await expect(as(third, 'profile.show')).rejects.toMatchObject({ code: 'unauthenticated' });
    await as(person, 'sessions.end', { session: person.session });
    await expect(as(person, 'sessions.list')).rejects.toMatchObject({ code: 'unauthenticated' });
  });

  test('of others cannot be ended', async () => {
    await expect(as(alice, 'sessions.end', { session: bob.session })).rejects.toMatchObject({ code: 'not_found' });
    await as(bob, 'profile.show');
  });

  test('note roughly when they were used last', async () => {
    const session = await signIn(server, bob.id);
    const lastUsedAt = async (): Promise<number> => {
      const { sessions } = await as(bob, 'sessions.list');
      return Date.parse(sessions.find(({ id }: { id: number }) => id === session.session).used_at);
    };
    await server.database.query(
      (sql) => sql`update session set last_used_at = now() - interval '1 day' where id = ${session.session}`,
    );
    expect(Date.now() - (await lastUsedAt())).toBeGreaterThan(3_600_000);
    await as(session, 'profile.show');
    expect(Date.now() - (await lastUsedAt())).toBeLessThan(60_000);
  });
});

describe('a profile', () => {
  test('is shown, changed, and found by others under its new nick at once', async () => {
    const person = await createPerson(server, 'oldnick');
    expect(await as(person, 'profile.show')).toEqual({
      id: person.id,
      kind: 'user',
      nick: 'oldnick',
      name: 'oldnick',
      about: null,
      role: 'user',
      created_at: expect.any(String),
      addresses: [],
    });
    const changed = await as(person, 'profile.update', { nick: 'NewNick', name: 'New Name', about: 'On call' });
    expect(changed).toMatchObject({ nick: 'newnick', name: 'New Name', about: 'On call' });
    expect(await as(alice, 'accounts.find', { user: 'newnick' })).toEqual(changed);
    expect(await as(alice, 'accounts.find', { user: person.id })).toEqual(changed);
    await expect(as(alice, 'accounts.find', { user: 'oldnick' })).rejects.toMatchObject({ code: 'not_found' });
    expect(await as(person, 'profile.update', { about: null })).toMatchObject({ name: 'New Name', about: null });
  });

  test('cannot take a nick that somebody has, nor change nothing', async () => {
    await expect(as(bob, 'profile.update', { nick: 'ALICE' })).rejects.toMatchObject({ code: 'nick_taken' });
    await expect(as(bob, 'profile.update', {})).rejects.toThrow('give nick, name or about');
    await expect(as(bob, 'profile.update', { nick: 'a b' })).rejects.toMatchObject({ code: 'invalid_input' });
    await expect(as(bob, 'profile.update', { role: 'admin' })).rejects.toMatchObject({ code: 'invalid_input' });
  });
});

describe('blocking', () => {
  test('is listed, ends, and is about somebody else', async () => {
    expect(await as(alice, 'blocks.add', { user: 'bob' })).toEqual({ user: 'bob', id: bob.id });
    await as(alice, 'blocks.add', { user: bob.id });
    expect(await as(alice, 'blocks.list')).toEqual({
      blocked: [{ id: bob.id, nick: 'bob', name: 'bob', at: expect.any(String) }],
      next: null,
    });
    expect((await as(bob, 'blocks.list')).blocked).toEqual([]);
    await expect(as(bob, 'private.open', { user: 'alice' })).rejects.toMatchObject({ code: 'blocked' });
    await as(alice, 'blocks.remove', { user: 'bob' });
    await expect(as(alice, 'blocks.remove', { user: 'bob' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(as(alice, 'blocks.add', { user: 'alice' })).rejects.toThrow('nobody can block themselves');
    await expect(as(alice, 'blocks.add', { user: 'nobody' })).rejects.toMatchObject({ code: 'not_found' });
    await as(bob, 'private.open', { user: 'alice' });
  });

  test('has a limit, which a repeat does not exceed', async () => {
    const person = await createPerson(server, 'blocker');
    await as(person, 'blocks.add', { user: 'bob' });
    await server.database.query(
      (sql) => sql`
        with created as (
          insert into account (kind, nick, name)
          select 'user', 'blocked' || n, 'Blocked' from generate_series(1, 999) n returning id)
        insert into block (account_id, blocked_id) select ${person.id}, id from created`,
    );
    await as(person, 'blocks.add', { user: 'bob' });
    await expect(as(person, 'blocks.add', { user: 'alice' })).rejects.toThrow('You block 1000 accounts');
    await as(person, 'blocks.remove', { user: 'bob' });
    await as(person, 'blocks.add', { user: 'alice' });
  });
});

describe('bots', () => {
  test('act with tokens of their owner, within the scopes, until these are revoked', async () => {
    const bot = await as(alice, 'bots.create', { nick: 'Robot', name: 'A robot' });
    expect(bot).toEqual({ id: expect.any(Number), nick: 'robot', name: 'A robot' });
    const made = await as(alice, 'tokens.create', {
      bot: 'robot',
      scopes: ['groups:read', 'messages:write', 'groups:read'],
      label: 'ci',
      expires_in_s: 3600,
    });
    expect(made).toMatchObject({ bot: 'robot', scopes: ['messages:write', 'groups:read'], label: 'ci' });
    expect(made.token).toMatch(/^klb_/);
    expect(await as(made, 'accounts.find', { user: 'alice' })).toMatchObject({ id: alice.id });
    await expect(as(made, 'profile.show')).rejects.toMatchObject({ code: 'missing_scope' });
    await expect(as(made, 'bots.list')).rejects.toMatchObject({ code: 'forbidden' });
    const { tokens } = await as(alice, 'tokens.list', { bot: bot.id });
    expect(tokens).toEqual([expect.objectContaining({ id: made.id, scopes: ['messages:write', 'groups:read'] })]);
    expect(JSON.stringify(tokens)).not.toContain(made.token);
    expect((await as(alice, 'bots.list')).bots).toEqual([expect.objectContaining({ nick: 'robot', tokens: 1 })]);
    await as(alice, 'tokens.revoke', { bot: 'robot', token: made.id });
    await expect(as(made, 'accounts.find', { user: 'alice' })).rejects.toMatchObject({ code: 'unauthenticated' });
    await expect(as(alice, 'tokens.revoke', { bot: 'robot', token: made.id })).rejects.toMatchObject({
      code: 'not_found',
    });
  });

  test("are their owner's alone, end when they are removed, and are bounded in number", async () => {
    const carol = await createPerson(server, 'carol');
    const results = await Promise.allSettled(
      ['one', 'two', 'three', 'four'].map((nick) => as(carol, 'bots.create', { nick: `carol-${nick}` })),
    );
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'quota_exceeded' });
    }
    const [{ nick, id }] = (await as(carol, 'bots.list')).bots;
    for (const [name, input] of [
      ['tokens.create', { bot: nick, scopes: ['account'], label: 'x' }],
      ['tokens.list', { bot: id }],
      ['tokens.revoke', { bot: id, token: 1 }],
      ['bots.remove', { bot: id }],
    ] as const) {
      await expect(as(bob, name, input)).rejects.toMatchObject({ code: 'not_found' });
    }
    const token = await as(carol, 'tokens.create', { bot: nick, scopes: ['account'], label: 'x' });
    await as(token, 'profile.show');
    await as(carol, 'bots.remove', { bot: nick });
    await expect(as(token, 'profile.show')).rejects.toMatchObject({ code: 'unauthenticated' });
    await expect(as(carol, 'bots.create', { nick: 'carol-five' })).rejects.toMatchObject({ code: 'quota_exceeded' });
    await expect(as(carol, 'bots.create', { nick: 'alice' })).rejects.toMatchObject({ code: 'quota_exceeded' });
  });

  test('get tokens with at least one scope and a time that has a bound', async () => {
    const dan = await createPerson(server, 'dan');
    await as(dan, 'bots.create', { nick: 'dans-bot' });
    const token = (more: object) =>
      as(dan, 'tokens.create', { bot: 'dans-bot', scopes: ['account'], label: 'x', ...more });
    for (const wrong of [{ scopes: [] }, { scopes: ['everything'] }, { expires_in_s: 1 }, { label: '' }]) {
      await expect(token(wrong)).rejects.toMatchObject({ code: 'invalid_input' });
    }
    const short = await token({ expires_in_s: 60 });
    await server.database.query((sql) => sql`update session set expires_at = now() where id = ${short.id}`);
    await expect(as(short, 'profile.show')).rejects.toMatchObject({ code: 'unauthenticated' });
  });
});

describe('an administrator', () => {
  test("deactivates an account: its sessions, links and bots' tokens end, and it cannot come back by itself", async () => {
    const eve = await createPerson(server, 'eve');
    await as(eve, 'bots.create', { nick: 'eves-bot' });
    const bot = await as(eve, 'tokens.create', { bot: 'eves-bot', scopes: ['account'], label: 'x' });
    await as(bot, 'profile.show');
    const link = await linkFor('eve');
    expect(await server.operate('accounts.deactivate', { user: 'eve' })).toEqual({
      user: 'eve',
      id: eve.id,
      deactivated: true,
    });
    for (const each of [eve, bot]) {
      await expect(as(each, 'profile.show')).rejects.toMatchObject({ code: 'unauthenticated' });
    }
    await expect(callAs(server, null, 'auth.verify', { link })).rejects.toMatchObject({ code: 'activation_expired' });
    await server.operate('accounts.deactivate', { user: 'eve' });
    await server.operate('accounts.activate', { user: 'eve' });
    const again = await callAs(server, null, 'auth.verify', { link: await linkFor('eve') });
    expect((await as(again, 'bots.list')).bots).toEqual([]);
    await server.operate('accounts.activate', { user: 'eves-bot' });
    expect((await as(again, 'bots.list')).bots).toEqual([expect.objectContaining({ nick: 'eves-bot', tokens: 0 })]);
  });

  test('who deactivates while somebody opens a link leaves no session behind', async () => {
    for (let round = 0; round < 20; round += 1) {
      const nick = `racer${round}`;
      const { id } = await createPerson(server, nick);
      const link = await linkFor(nick);
      const [opened, deactivated] = await Promise.allSettled([
        callAs(server, null, 'auth.verify', { link }),
        server.operate('accounts.deactivate', { user: nick }),
      ]);
      expect(deactivated.status).toBe('fulfilled');
      const rows = await server.database.query((sql) => sql`select from session where account_id = ${id}`);
      expect(rows).toHaveLength(0);
      if (opened.status === 'fulfilled') {
        await expect(as(opened.value, 'profile.show')).rejects.toMatchObject({ code: 'unauthenticated' });
      }
    }
  });

  test('makes and unmakes administrators, which holds on open sessions', async () => {
    const frank = await createPerson(server, 'frank');
    await expect(as(frank, 'accounts.list')).rejects.toMatchObject({ code: 'forbidden' });
    expect(await server.operate('accounts.update', { user: 'frank', admin: true, name: 'Frank' })).toMatchObject({
      role: 'admin',
      name: 'Frank',
    });
    await as(frank, 'accounts.list');
    await as(frank, 'accounts.update', { user: 'frank', admin: false });
    await expect(as(frank, 'accounts.list')).rejects.toMatchObject({ code: 'forbidden' });
  });

  test("gives an account its address, which is one of its kind and nobody else's", async () => {
    const grace = await createPerson(server, 'grace');
    await server.operate('accounts.update', { user: 'grace', address: 'Grace@Example.org' });
    await server.operate('accounts.update', { user: 'grace', address: '+44 1632 960001' });
    await server.operate('accounts.update', { user: 'grace', address: 'grace@example.com' });
    expect((await as(grace, 'profile.show')).addresses).toEqual([
      { kind: 'email', address: 'grace@example.com' },
      { kind: 'phone', address: '+441632960001' },
    ]);
    await expect(server.operate('accounts.update', { user: 'bob', address: 'grace@example.com' })).rejects.toThrow(
      'address: it belongs to another account; give another one, or first give that account another one',
    );
    for (const address of ['grace', '0170 1234567', 'a@b@c', 'a b@example.org', 'x@exa mple.org', '"x"@example.org']) {
      await expect(server.operate('accounts.update', { user: 'bob', address })).rejects.toThrow(/^address: /);
    }
    await expect(server.operate('accounts.update', { user: 'bob' })).rejects.toThrow('give name, admin or address');
    await expect(server.operate('accounts.update', { user: 'robot', admin: true })).rejects.toThrow('is a bot');
  });
});
