import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { callAs } from '../../support/call.ts';
import { createPerson, type TestPerson } from '../../support/people.ts';
import { TestServer, type TestGroup } from '../../support/server.ts';

let server: TestServer;
let group: TestGroup;
let owner: TestPerson;
let member: TestPerson;
beforeAll(async () => {
  server = await TestServer.start();
  owner = await createPerson(server, 'owner');
  member = await createPerson(server, 'member');
});
afterAll(() => server.stop());
beforeEach(async () => {
  group = await server.createGroup();
  await server.operate('groups.add-member', { group: group.id, user: 'owner', role: 'owner' });
  await server.operate('groups.add-member', { group: group.id, user: 'member' });
});

const inGroup = (input: object = {}): object => ({ group: group.id, ...input });
const backup = {
  key: 'backup',
  within: '26h',
  last_post_at: null,
  set_at: expect.any(String),
  overdue: false,
  due_at: expect.any(String),
};

describe('the operations on expectations', () => {
  test('set, list and remove them', async () => {
    const set = await callAs(server, owner, 'expectations.set', inGroup({ key: ' backup ', within: '26 hours' }));
    expect(set).toEqual({ group: group.id, ...backup, changed: true });
    const again = await callAs(server, owner, 'expectations.set', inGroup({ key: 'backup', within: '26h' }));
    expect(again).toMatchObject({ changed: false });
    await callAs(server, owner, 'expectations.set', inGroup({ key: 'a', within: '1d' }));
    expect(await callAs(server, owner, 'expectations.list', inGroup())).toEqual({
      expectations: [{ ...backup, key: 'a', within: '1d' }, backup],
    });
    expect(await callAs(server, owner, 'expectations.remove', inGroup({ key: 'a' }))).toEqual(inGroup({ key: 'a' }));
    await expect(callAs(server, owner, 'expectations.remove', inGroup({ key: 'a' }))).rejects.toMatchObject({
      code: 'not_found',
      message: `Group ${group.id} expects no post with this key: look at the list of what it expects`,
    });
    expect(await callAs(server, owner, 'expectations.list', inGroup())).toEqual({ expectations: [backup] });
  });

  test('tell when it is due: so long from now, while the server runs', async () => {
    const { due_at: dueAt } = await callAs<{ due_at: string }>(
      server,
      owner,
      'expectations.set',
      inGroup({ key: 'backup', within: '26h' }),
    );
    const hours = (Date.parse(dueAt) - Date.now()) / 3_600_000;
    expect(hours).toBeGreaterThan(25.9);
    expect(hours).toBeLessThan(26.1);
  });

  test.each([
    [{ key: 'backup', within: '59s' }, /within/],
    [{ key: 'backup', within: '367d' }, /within/],
    [{ key: 'backup', within: 'soon' }, /within/],
    [{ key: '\n', within: '1d' }, /key/],
    [{ key: 'k'.repeat(201), within: '1d' }, /key/],
  ])('refuse %j with the name of the field', async (input, field) => {
    await expect(callAs(server, owner, 'expectations.set', inGroup(input))).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(field),
    });
  });

  test('are shown in groups.info to owners and admins, and not to members', async () => {
    await server.operate('expectations.set', inGroup({ key: 'backup', within: '26h' }));
    expect(await callAs(server, owner, 'groups.info', inGroup())).toMatchObject({ expectations: [backup] });
    expect(await callAs(server, member, 'groups.info', inGroup())).not.toHaveProperty('expectations');
  });
});
