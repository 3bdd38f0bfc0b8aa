import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import { eventually } from '../support/eventually.ts';
import { Receiver } from '../support/receiver.ts';
import { postJson, TestServer } from '../support/server.ts';
import { createGroup, createPeople, noticesIn, outcomesOf, type People } from './fixture.ts';

let server: TestServer;
let people: People;
let receiver: Receiver;
let group: number;
let status = 200;
beforeAll(async () => {
  const limits = { hooksPerGroup: 3, hookRegistrationsPerGroupPerMinute: 6, hookChangesPerGroupPerMinute: 8 };
  server = await TestServer.start({ limits, delivery: { retryDelaysMs: [50] } });
  people = await createPeople(server, 'alice', 'bob', 'carol', 'dave', 'root');
});
afterAll(() => server.stop());
beforeEach(async () => {
  status = 200;
  receiver = await Receiver.start(() => status);
  group = await createGroup(server, people['alice']!, { members: { bob: 'admin', carol: 'member' } });
});
afterEach(() => receiver.stop());

const as = (nick: string, name: string, input: object) => callAs(server, people[nick]!, name, input);
const refused = (code: string) => expect.objectContaining({ code }) as unknown as Error;
const create = (nick = 'alice', path = '/a-private-path?key=hidden'): Promise<{ id: number; secret: string }> =>
  as(nick, 'hooks.create', { group, url: receiver.url(path) });
const webhook = async (): Promise<string> =>
  (await as('alice', 'groups.info', { group })).webhook.replace('http://klatch.example', server.url);

/** The operations on one hook, each with its input besides the hook. */
const ON_HOOK = [
  ['hooks.info', {}],
  ['hooks.log', {}],
  ['hooks.stats', {}],
  ['hooks.update', { paused: true }],
  ['hooks.ping', {}],
  ['hooks.redeliver', { from: '2026-01-01T00:00:00Z' }],
  ['hooks.discard-backlog', {}],
  ['hooks.remove', {}],
  ['hooks.restore', {}],
] as const;

describe('the reverse webhooks of a group', () => {
  test('are registered by its owner and admins, and forward what comes from then on', async () => {
    const { id, secret } = await create('bob');
    expect(secret).toMatch(/^whsec_/);
    await postJson(await webhook(), { text: 'forwarded' });
    const [arrival] = await receiver.received(1);
    expect(arrival!.body.data.message.text).toBe('forwarded');
    const { hooks } = await as('alice', 'hooks.list', { group });
    expect(hooks).toMatchObject([{ id, group, state: 'active', host: `127.0.0.1:${receiver.port}`, removed: null }]);
    expect(await as('alice', 'hooks.info', { hook: id })).toMatchObject({ order: 'strict', batch: 1, signature: 'v1' });
    const info = await as('bob', 'groups.info', { group });
    expect(info.hooks).toMatchObject([{ id, url: receiver.url('/a-private-path?key=hidden'), state: 'active' }]);
  });

  test('are managed by them as by the command line', async () => {
    const { id: hook } = await create();
    const about = { id: hook, group };
    expect(await as('bob', 'hooks.update', { hook, paused: true, batch: 10 })).toMatchObject({
      ...about,
      state: 'paused',
    });
    await postJson(await webhook(), { text: 'dropped' });
    expect(await as('alice', 'hooks.discard-backlog', { hook })).toEqual({ ...about, skipped: 1 });
    const rotated = await as('alice', 'hooks.update', { hook, paused: false, rotate_secret: true });
    expect(rotated).toMatchObject({ ...about, state: 'active', secret: expect.stringMatching(/^whsec_/) as unknown });
    expect(await as('bob', 'hooks.ping', { hook })).toMatchObject({ ...about, delivered: true });
    expect(await as('bob', 'hooks.redeliver', { hook, only: [`${group}:1`] })).toMatchObject({ from: `${group}:1` });
    await receiver.received(2);
    const log = await eventually(
      () => as('alice', 'hooks.log', { hook }),
      (page: { attempts: unknown[] }) => page.attempts.length >= 2,
    );
    expect(log).toMatchObject({ ...about, next: null });
    expect(await as('bob', 'hooks.remove', { hook })).toEqual(about);
    await expect(as('bob', 'hooks.remove', { hook })).rejects.toEqual(refused('hook_not_found'));
    await expect(as('bob', 'hooks.restore', { hook })).rejects.toEqual(refused('hook_not_restorable'));
    expect((await as('bob', 'hooks.list', { group, state: 'removed' })).hooks).toMatchObject([{ id: hook }]);
  });

  test('are told of to the members, with whose doing it was and no more of the target than its host', async () => {
    const { id } = await create('bob');
    await as('alice', 'hooks.remove', { hook: id });
    status = 410;
    const { id: gone } = await create('alice', '/gone');
    await postJson(await webhook(), { text: 'answered 410' });
    await eventually(
      () => as('alice', 'hooks.list', { group, state: 'removed' }),
      ({ hooks }: { hooks: readonly unknown[] }) => hooks.length === 2,
    );
    status = 200;
    await as('bob', 'hooks.restore', { hook: gone });
    const of = (hook: number) => ({ hook, host: '127.0.0.1' });
    expect((await noticesIn(server, group)).slice(3)).toEqual([
      { kind: 'hook_added', actor: 'bob', details: of(id) },
      { kind: 'hook_removed', actor: 'alice', details: of(id) },
      { kind: 'hook_added', actor: 'alice', details: of(gone) },
      { kind: 'hook_removed', actor: null, details: of(gone) },
      { kind: 'hook_restored', actor: 'bob', details: of(gone) },
    ]);
  });

  test('are told of as well when the holder of the token does it', async () => {
    const url = await webhook();
    const { body } = await postJson(`${url}/reverse`, { url: receiver.url() });
    expect((await fetch(`${url}/reverse/${body.id}`, { method: 'DELETE' })).status).toBe(202);
    const rows = await server.database.query(
      (sql) => sql`
        select n.kind, a.kind as actor from notice n join account a on a.id = n.actor_id
        where n.conversation_id = ${group} and n.kind like 'hook%' order by n.rev`,
    );
    expect([...rows]).toEqual([
      { kind: 'hook_added', actor: 'webhook' },
      { kind: 'hook_removed', actor: 'webhook' },
    ]);
  });

  test('are nothing to members, and to strangers and owners of other groups they are not there', async () => {
    const { id: hook } = await create();
    await createGroup(server, people['dave']!);
    for (const [name, input] of ON_HOOK) {
      await expect(as('carol', name, { hook, ...input })).rejects.toEqual(refused('forbidden'));
      await expect(as('dave', name, { hook, ...input })).rejects.toMatchObject({
        code: 'not_found',
        message: `There is no reverse webhook ${hook}: look at the list of them`,
      });
      await expect(as('dave', name, { hook: 999_999, ...input })).rejects.toMatchObject({
        code: 'not_found',
        message: 'There is no reverse webhook 999999: look at the list of them',
      });
    }
    await expect(as('bob', 'hooks.list-all', {})).rejects.toEqual(refused('forbidden'));
    expect(await as('root', 'hooks.info', { hook })).toMatchObject({ id: hook, state: 'active' });
  });

  test('are managed no more by who was an admin', async () => {
    const { id: hook } = await create('bob');
    await as('alice', 'groups.set-role', { group, user: 'bob', role: 'member' });
    for (const [name, input] of ON_HOOK)
      await expect(as('bob', name, { hook, ...input })).rejects.toEqual(refused('forbidden'));
    await as('alice', 'groups.remove-member', { group, user: 'bob' });
    for (const [name, input] of ON_HOOK)
      await expect(as('bob', name, { hook, ...input })).rejects.toEqual(refused('not_found'));
  });

  test('are not registered by an admin who is removed while the registration waits', async () => {
    let release = (): void => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    let locked = (): void => {};
    const isLocked = new Promise<void>((resolve) => (locked = resolve));
    const removal = server.database.query(async (sql) =>
      sql.begin(async (tx) => {
        await tx`select from conversation_head where conversation_id = ${group} for no key update`;
        await tx`delete from membership where conversation_id = ${group} and account_id = ${people['bob']!.id}`;
        locked();
        await released;
      }),
    );
    await isLocked;
    const registration = create('bob').catch((error: unknown) => error);
    await eventually(
      async () => {
        const rows = await server.database.query(
          (sql) => sql`
            select from pg_locks l join pg_stat_activity a using (pid)
            where not l.granted and l.locktype in ('tuple', 'transactionid') and a.datname = current_database()`,
        );
        return rows.length;
      },
      (waiting) => waiting > 0,
    );
    release();
    await removal;
    expect(await registration).toMatchObject({ code: 'not_found' });
    expect((await as('alice', 'hooks.list', { group })).hooks).toEqual([]);
  });
});

describe('the bounds and errors of the contract', () => {
  test.each([
    ['not a url', 'invalid_hook_url'],
    ['ftp://example.org/', 'invalid_hook_url'],
    ['https://user:password@example.org/', 'invalid_hook_url'],
    ['https://example.org/#fragment', 'invalid_hook_url'],
    ['http://10.0.0.1/', 'hook_address_forbidden'],
  ])('hold for people too: %s is refused with %s', async (url, code) => {
    await expect(as('alice', 'hooks.create', { group, url })).rejects.toEqual(refused(code));
  });

  test('hold for the number of hooks, and for one URL twice at once', async () => {
    expect(await outcomesOf([create(), create()])).toEqual({ done: 1, hook_exists: 1 });
    expect(await outcomesOf(['/1', '/2', '/3'].map((path) => create('alice', path)))).toEqual({
      done: 2,
      too_many_hooks: 1,
    });
  });

  test('hold for how often, and not for administrators', async () => {
    const tries = Array.from({ length: 8 }, () => as('bob', 'hooks.create', { group, url: 'no' }));
    expect(await outcomesOf(tries)).toEqual({ invalid_hook_url: 6, token_rate_limited: 2 });
    const { id: hook } = await as('root', 'hooks.create', { group, url: receiver.url() });
    const update = (nick: string) => as(nick, 'hooks.update', { hook, batch: 2 });
    expect(await outcomesOf(Array.from({ length: 10 }, () => update('bob')))).toEqual({
      done: 8,
      token_rate_limited: 2,
    });
    expect(await outcomesOf([update('root')])).toEqual({ done: 1 });
  });

  test.each([
    { batch: 0 },
    { batch: 101 },
    { order: 'sorted' },
    { signature: 'v2' },
    { skip: ['user'] },
    { description: 'x'.repeat(201) },
    { secret: 'whsec_mine' },
  ])('hold for %j', async (input) => {
    const asked = as('alice', 'hooks.create', { group, url: receiver.url(), ...input });
    await expect(asked).rejects.toEqual(refused('invalid_input'));
  });
});

describe('the integration token', () => {
  test('is shown to owner and admins, and replaced by them; the old one holds no longer', async () => {
    const old = await webhook();
    expect(await as('bob', 'groups.show-token', { group })).toMatchObject({ group, token: old.split('/').at(-1) });
    const { token } = await as('bob', 'groups.rotate-token', { group });
    expect((await postJson(old, { text: 'no' })).status).toBe(404);
    expect((await postJson(`${server.url}/v1/webhooks/${token}`, { text: 'yes' })).status).toBe(200);
    const told = (await noticesIn(server, group)).at(-1);
    expect(told).toEqual({ kind: 'token_rotated', actor: 'bob', details: {} });
  });
});
