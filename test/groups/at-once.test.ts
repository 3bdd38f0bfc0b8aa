import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import { postJson, TestServer } from '../support/server.ts';
import { createGroup, createPeople, noticesIn, outcomesOf, rolesIn } from './fixture.ts';

const ROUNDS = 4;
/** A lock time-out that is far longer than a busy machine needs, so that a wait for a lock differs from a deadlock. */
const LONG_MS = 60_000;
const NICKS = ['alice', 'bob', 'carol', 'dave'] as const;
let server: TestServer;
beforeAll(async () => {
  const limits = {
    hookChangesPerGroupPerMinute: 10_000,
    hookRegistrationsPerGroupPerMinute: 10_000,
    invitesPerGroup: 10_000,
  };
  const postgresql = { lockTimeoutMs: LONG_MS, databaseCallTimeoutMs: LONG_MS };
  server = await TestServer.start({ limits, postgresql, http: { requestToResponseTimeoutMs: LONG_MS } });
});
afterAll(() => server.stop());

test('everything that changes two groups and their people at once ends, and leaves them whole', async () => {
  const people = await createPeople(server, ...NICKS);
  const groups = await Promise.all(
    [people['alice']!, people['bob']!].map((owner) => createGroup(server, owner, { public: true })),
  );
  const url = async (group: number, owner: string): Promise<string> =>
    (await callAs(server, people[owner]!, 'groups.info', { group })).webhook.replace(
      'http://klatch.example',
      server.url,
    );
  const urls = [await url(groups[0]!, 'alice'), await url(groups[1]!, 'bob')];
  // These calls make the server cache the tokens. A look-up has a time-out of its own, which a busy machine may exceed
  // in this test.
  for (const nick of NICKS) await callAs(server, people[nick]!, 'profile.show');
  const calls: Promise<unknown>[] = [];
  const call = (nick: string, name: string, input: object) => calls.push(callAs(server, people[nick]!, name, input));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const nick of NICKS) {
      for (const [index, group] of groups.entries()) {
        const owner = NICKS[index]!;
        call(nick, 'groups.join', { group });
        call(owner, 'groups.add-member', { group, user: nick });
        call(owner, 'groups.remove-member', { group, user: NICKS[(round + index) % NICKS.length]! });
        call(owner, 'groups.set-role', { group, user: nick, role: round % 2 === 0 ? 'admin' : 'member' });
        call(nick, 'hooks.create', { group, url: `https://example.org/${round % 3}` });
        call(nick, 'groups.leave', { group });
        calls.push(postJson(urls[index]!, { text: `${round}` }));
      }
      call(nick, 'private.open', { user: NICKS[(round + 1) % NICKS.length]! });
    }
  }
  const outcomes = await outcomesOf(calls);
  // Which of these refusals occur depends on the order of events. A deadlock would be `database_unavailable`, a broken
  // constraint of the database `internal`.
  const expected = ['done', 'not_found', 'forbidden', 'last_owner', 'invalid_input', 'hook_exists'];
  expect(expected).toEqual(expect.arrayContaining(Object.keys(outcomes)));
  for (const [index, group] of groups.entries()) {
    expect((await rolesIn(server, group))[NICKS[index]!]).toBe('owner');
    const told = (await noticesIn(server, group)) as readonly { kind: string }[];
    const count = (...kinds: readonly string[]): number => told.filter(({ kind }) => kinds.includes(kind)).length;
    const members = Object.keys(await rolesIn(server, group)).length;
    expect(1 + count('joined') - count('left', 'removed')).toBe(members);
    const [head] = await server.database.query(
      (sql) => sql<{ rev: number; seq: number }[]>`
        select last_rev as rev, last_seq as seq from conversation_head where conversation_id = ${group}`,
    );
    expect(head).toEqual({ rev: told.length + NICKS.length * ROUNDS, seq: NICKS.length * ROUNDS });
  }
  const pairs = await server.database.query((sql) => sql`select from private_conversation`);
  expect(pairs.length).toBeLessThanOrEqual(6);
});
