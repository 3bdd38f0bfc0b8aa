import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { callAs } from '../../support/call.ts';
import { createPerson, signIn, type TestPerson } from '../../support/people.ts';
import { TestServer } from '../../support/server.ts';

const MAX_SESSIONS = 3;

let server: TestServer;
let people = 0;
beforeAll(async () => {
  server = await TestServer.start({ limits: { sessionsPerUser: MAX_SESSIONS } });
});
afterAll(() => server.stop());

const newPerson = (): Promise<TestPerson> => createPerson(server, `person-${(people += 1)}`);
const as = (person: { token: string }, name: string, input: object = {}) => callAs(server, person, name, input);
const create = (person: { token: string }, more: object = {}) =>
  as(person, 'sessions.create', { label: 'report', ...more });

describe('an app password', () => {
  test('acts as its person, is listed without its token, and ends like any other session', async () => {
    const person = await newPerson();
    const created = await create(person, { label: ' nightly report ', expires_in_s: 3_600 });
    expect(created).toEqual({
      session: expect.any(Number),
      token: expect.stringMatching(/^kls_[A-Za-z0-9_-]{43}$/),
      label: 'nightly report',
      expires_at: expect.any(String),
    });
    const lifetimeS = (Date.parse(created.expires_at) - Date.now()) / 1_000;
    expect(Math.abs(lifetimeS - 3_600)).toBeLessThan(120);
    expect(await as(created, 'profile.show')).toMatchObject({ id: person.id });

    const { sessions } = await as(created, 'sessions.list');
    expect(JSON.stringify(sessions)).not.toContain(created.token);
    expect(sessions).toMatchObject([
      { id: person.session, label: 'test', app_password: false, current: false, expires_at: null },
      { id: created.session, label: 'nightly report', app_password: true, current: true },
    ]);
    expect(sessions[1].expires_at).toBe(created.expires_at);
    await as(person, 'sessions.end', { session: created.session });
    await expect(as(created, 'profile.show')).rejects.toMatchObject({ code: 'unauthenticated' });
  });

  test('without an end lasts until all others are ended, or its account is deactivated', async () => {
    const person = await newPerson();
    const first = await create(person);
    expect(first.expires_at).toBeNull();
    expect(await as(person, 'sessions.end-others')).toEqual({ ended: 1 });
    await expect(as(first, 'profile.show')).rejects.toMatchObject({ code: 'unauthenticated' });
    const second = await create(person);
    await server.operate('accounts.deactivate', { user: person.nick });
    await expect(as(second, 'profile.show')).rejects.toMatchObject({ code: 'unauthenticated' });
  });

  test('creates no other, whatever its end', async () => {
    const created = await create(await newPerson());
    for (const more of [{}, { expires_in_s: 60 }]) {
      await expect(create(created, more)).rejects.toMatchObject({ code: 'forbidden', status: 403 });
    }
  });

  test('is created by no session that has ended, even while a server remembers it', async () => {
    const person = await newPerson();
    const other = await signIn(server, person.id);
    await as(other, 'profile.show');
    // The session ends without the notification by which servers learn of that.
    await server.database.query((sql) => sql`delete from session where id = ${other.session}`);
    await as(other, 'profile.show');
    await expect(create(other)).rejects.toMatchObject({ code: 'unauthenticated' });
    expect((await as(person, 'sessions.list')).sessions).toHaveLength(1);
  });

  test('counts among the sessions of a person, which have a bound, and ends none of them', async () => {
    const person = await newPerson();
    const results = await Promise.allSettled(Array.from({ length: MAX_SESSIONS + 2 }, () => create(person)));
    const refused = results.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
    expect(refused).toHaveLength(3);
    for (const each of refused) expect(each).toMatchObject({ code: 'quota_exceeded' });
    const { sessions } = await as(person, 'sessions.list');
    expect(sessions).toHaveLength(MAX_SESSIONS);
    await as(person, 'sessions.end', { session: sessions[1].id });
    await create(person);
  });

  test.each([{ label: '' }, { label: 'a\nb' }, { label: 'x'.repeat(101) }, { expires_in_s: 59 }, { scopes: [] }])(
    'with %j is refused',
    async (more) => {
      await expect(create(await newPerson(), more)).rejects.toMatchObject({ code: 'invalid_input' });
    },
  );
});
