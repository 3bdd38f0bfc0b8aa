import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { GroupApi } from '../../web/core/group-api.ts';
import type { OperationCaller } from '../../web/core/people/operation-caller.ts';
import { PeopleApi } from '../../web/core/people/people-api.ts';
import { callAs } from '../support/call.ts';
import { createPerson, type TestPerson } from '../support/people.ts';
import { TestServer } from '../support/server.ts';

const NICKS = ['a', 'al', 'ali', 'ali.b', 'alib', 'b-1', 'b_1', 'b1'] as const;

let server: TestServer;
let alice: TestPerson;
const others = new Map<string, TestPerson>();
beforeAll(async () => {
  server = await TestServer.start();
  alice = await createPerson(server, 'alice');
  for (const nick of NICKS) others.set(nick, await createPerson(server, nick));
});
afterAll(() => server.stop());

/** Makes calls as the page does, with a token in place of a cookie. */
const api = (): OperationCaller => ({
  call: async (operation, input, decode) => decode(await callAs(server, alice, operation, input)),
});

test('the role of one member is found by the nick, whatever the nicks of others begin with', async () => {
  const { id } = await callAs<{ id: number }>(server, alice, 'groups.create', { title: 'Nicks' });
  for (const user of NICKS) await callAs(server, alice, 'groups.add-member', { group: id, user });
  await callAs(server, alice, 'groups.set-role', { group: id, user: 'ali', role: 'admin' });
  const group = new GroupApi(api(), id);
  const found = await Promise.all([...NICKS, 'alice'].map((nick) => group.memberByNick(nick)));
  expect(found.map((member) => `${member?.nick} ${member?.role}`)).toEqual([
    ...NICKS.map((nick) => `${nick} ${nick === 'ali' ? 'admin' : 'member'}`),
    'alice owner',
  ]);
  for (const nick of ['c', 'alic', 'alice1']) expect(await group.memberByNick(nick)).toBeNull();
});

test('of two people the one that was blocked is, whoever came first', async () => {
  const people = new PeopleApi(api());
  const [first, second, third] = [others.get('a')!.id, others.get('al')!.id, others.get('ali')!.id];
  await people.setBlocked(second, true);
  expect(await Promise.all([first, second, third].map((id) => people.isBlocked(id)))).toEqual([false, true, false]);
  await people.setBlocked(second, false);
  expect(await people.isBlocked(second)).toBe(false);
});
