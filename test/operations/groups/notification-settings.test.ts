import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { callAs } from '../../support/call.ts';
import { createPerson, type TestPerson } from '../../support/people.ts';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { joined, privateOf } from '../conversation-calls.ts';

let server: TestServer;
let group: TestGroup;
let alice: TestPerson;
let people = 0;
beforeAll(async () => {
  server = await TestServer.start({ googlePush: { keys: [{ projectId: 'first', key: '/nowhere.json' }] } });
});
beforeEach(async () => {
  group = await server.createGroup('Operations');
  alice = await joined(server, `person-${(people += 1)}`, group.id);
});
afterAll(async () => server.stop());

interface Setting {
  readonly level: string;
  readonly muted_until: string | null;
}

const update = (input: object, person = alice): Promise<Setting & { conversation: number }> =>
  callAs(server, person, 'notifications.update', { conversation: group.id, ...input });
const shown = async (person = alice): Promise<Setting> =>
  (await callAs(server, person, 'conversations.show', { conversation: group.id })).notifications;

/** Inserts a pending push for a device of alice in the group. The returned function says whether it still waits. */
async function waiting(): Promise<() => Promise<boolean>> {
  const { id } = await callAs(server, alice, 'devices.register', { kind: 'google', token: `token-${alice.nick}` });
  await server.database.query(
    (sql) => sql`
      insert into push_pending (device_id, conversation_id, kind, first_seq, last_seq, next_at)
      values (${id}, ${group.id}, 'google', 1, 1, now() + interval '1 day')`,
  );
  return async () => {
    const rows = await server.database.query((sql) => sql`select from push_pending where device_id = ${id}`);
    return rows.length > 0;
  };
}

describe('notifications.update', () => {
  test('changes what is given and leaves the rest, and conversations show it', async () => {
    const all = { level: 'all', muted_until: null };
    expect(await shown()).toEqual(all);
    expect(await update({ level: 'mentions' })).toEqual({ ...all, conversation: group.id, level: 'mentions' });
    const until = '2090-01-01T00:00:00.000Z';
    const muted = { level: 'mentions', muted_until: until };
    expect(await update({ muted_until: '2090-01-01T01:00:00+01:00' })).toEqual({ ...muted, conversation: group.id });
    expect(await shown()).toEqual(muted);
    expect(await update({ level: 'nothing' })).toMatchObject({ level: 'nothing', muted_until: until });
    expect(await update({ muted_until: null })).toMatchObject({ level: 'nothing', muted_until: null });
    expect(await update({ level: 'all', muted_until: null })).toMatchObject(all);
    const { conversations } = await callAs(server, alice, 'conversations.list');
    expect(conversations).toMatchObject([{ id: group.id, notifications: all }]);
  });

  test("is each member's own, in a private conversation too", async () => {
    const bob = await joined(server, `person-${(people += 1)}`, group.id);
    await update({ level: 'nothing' });
    expect(await shown(bob)).toEqual({ level: 'all', muted_until: null });
    const conversation = await privateOf(server, alice, bob);
    await callAs(server, bob, 'notifications.update', { conversation, level: 'mentions' });
    const own = await callAs(server, bob, 'conversations.show', { conversation });
    const other = await callAs(server, alice, 'conversations.show', { conversation });
    expect([own.notifications.level, other.notifications.level]).toEqual(['mentions', 'all']);
  });

  test.each([
    ['nothing is to be told', { level: 'nothing' }, false],
    ['it is muted', { muted_until: '2090-01-01T00:00:00Z' }, false],
    ['it was muted once', { muted_until: '2020-01-01T00:00:00Z' }, true],
    ['mentions are told still', { level: 'mentions' }, true],
  ])('what waits for a device is withdrawn only where it is not wanted any more: %s', async (_, change, waits) => {
    const stillWaits = await waiting();
    await update(change);
    expect(await stillWaits()).toBe(waits);
  });

  test('ends with the membership', async () => {
    await update({ level: 'nothing' });
    await callAs(server, alice, 'groups.leave', { group: group.id });
    await expect(update({ level: 'mentions' })).rejects.toMatchObject({ code: 'not_found' });
    await server.operate('groups.add-member', { group: group.id, user: alice.nick });
    expect(await shown()).toEqual({ level: 'all', muted_until: null });
  });

  test.each([
    ['nothing to change', {}, 'give level or muted_until'],
    ['a level that there is not', { level: 'some' }, 'level: '],
    ['a moment without a zone', { muted_until: '2030-01-01T00:00:00' }, 'muted_until: give a moment'],
    ['no moment', { muted_until: 'tomorrow' }, 'muted_until: give a moment'],
    ['a moment that no calendar has', { muted_until: '+275760-01-01T00:00:00Z' }, 'muted_until: give a moment'],
    ['a number', { muted_until: 1_900_000_000 }, 'muted_until: '],
  ])('refuses %s', async (_, input, sentence) => {
    await expect(update(input)).rejects.toMatchObject({ status: 400, message: expect.stringContaining(sentence) });
  });

  test('of several at once ends with one of them', async () => {
    const levels = ['all', 'mentions', 'nothing'];
    await Promise.all(Array.from({ length: 12 }, (_, n) => update({ level: levels[n % 3] })));
    expect(levels).toContain((await shown()).level);
  });

  test('is nothing for who is not in the conversation', async () => {
    const stranger = await createPerson(server, `person-${(people += 1)}`);
    await expect(update({ level: 'all' }, stranger)).rejects.toMatchObject({ code: 'not_found' });
  });
});
