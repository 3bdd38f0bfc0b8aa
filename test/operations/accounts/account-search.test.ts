import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { callAs } from '../../support/call.ts';
import { createPerson, type TestPerson } from '../../support/people.ts';
import { TestServer } from '../../support/server.ts';
import { joined } from '../conversation-calls.ts';

let server: TestServer;
let group: number;
let alice: TestPerson;
let eve: TestPerson;
beforeAll(async () => {
  server = await TestServer.start();
  ({ id: group } = await server.createGroup('Search'));
  alice = await joined(server, 'alice', group);
  eve = await createPerson(server, 'eve');
  for (const [nick, name] of [
    ['albert', 'Zoë Albers'],
    ['zoe', 'Alma Čapková'],
    ['per_cent', '100%'],
  ] as const) {
    await server.operate('accounts.create', { nick, name });
  }
  await server.operate('groups.add-member', { group, user: 'albert' });
  await server.operate('accounts.create', { nick: 'alumna', name: 'Gone' });
  await server.operate('accounts.deactivate', { user: 'alumna' });
});
afterAll(() => server.stop());

async function found(text: string, input: object = {}, person = alice): Promise<string[]> {
  const { accounts } = await callAs<{ accounts: { nick: string }[] }>(server, person, 'accounts.search', {
    text,
    ...input,
  });
  return accounts.map(({ nick }) => nick);
}

describe('accounts.search', () => {
  test('finds active people by the beginning of nick or name, in capital or small letters', async () => {
    expect(await found('al')).toEqual(['albert', 'alice', 'zoe']);
    expect(await found(' ZO')).toEqual(['albert', 'zoe']);
    expect(await found('zoë')).toEqual(['albert']);
    expect(await found('lice')).toEqual([]);
  });

  test('takes what is typed as letters, whatever they mean in patterns', async () => {
    expect(await found('%')).toEqual([]);
    expect(await found('a_')).toEqual([]);
    expect(await found('per_')).toEqual(['per_cent']);
    expect(await found('100%')).toEqual(['per_cent']);
  });

  test('finds members of a conversation by any word of their name, for its members alone', async () => {
    expect(await found('al', { conversation: group })).toEqual(['albert', 'alice']);
    expect(await found('albers', { conversation: group })).toEqual(['albert']);
    expect(await found('albers')).toEqual([]);
    for (const person of [eve]) {
      await expect(found('al', { conversation: group }, person)).rejects.toMatchObject({ code: 'not_found' });
    }
  });

  test('comes in pages by nick', async () => {
    const page = (input: object): Promise<unknown> =>
      callAs(server, alice, 'accounts.search', { text: 'al', limit: 2, ...input });
    expect(await page({})).toMatchObject({ accounts: [{ nick: 'albert' }, { nick: 'alice' }], next: 'alice' });
    expect(await page({ after: 'alice' })).toMatchObject({ accounts: [{ nick: 'zoe' }], next: null });
  });
});
