import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { callAs } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestPerson } from '../../support/people.ts';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { changes, history, joined, send } from '../conversation-calls.ts';

let server: TestServer;
let group: TestGroup;
let alice: TestPerson;
let bob: TestPerson;
beforeAll(async () => {
  server = await TestServer.start();
  group = await server.createGroup('Operations');
  alice = await joined(server, 'alice', group.id, 'owner');
  bob = await joined(server, 'bob', group.id);
});
afterAll(() => server.stop());

const newest = async (person: TestPerson): Promise<unknown> =>
  (await history(server, person, { conversation: group.id, limit: 1 })).messages[0];

describe('the answer of messages.send', () => {
  test('is the message as history shows it, with the client_id of the call', async () => {
    const sent = await send(server, alice, group.id, 'hello @bob', { client_id: 'laptop-1' });
    const { conversation, repeated, ...message } = sent;
    expect([conversation, repeated]).toEqual([group.id, false]);
    expect(message).toEqual(await newest(alice));
    expect(message).toMatchObject({
      text: 'hello @bob',
      rev: expect.any(Number),
      sender: { id: alice.id, nick: 'alice' },
      sent_at: expect.stringMatching(/Z$/),
      mentions: ['bob'],
      client_id: 'laptop-1',
    });
  });

  test('has no client_id where none was given', async () => {
    expect(await send(server, alice, group.id, 'plain')).not.toHaveProperty('client_id');
  });

  test('shows the message as it is now when a call is repeated', async () => {
    const input = { client_id: 'laptop-2' };
    const { seq } = await send(server, alice, group.id, 'frist', input);
    await callAs(server, alice, 'messages.edit', { conversation: group.id, seq, text: 'first' });
    expect(await send(server, alice, group.id, 'frist', input)).toMatchObject({
      ...((await newest(alice)) as object),
      text: 'first',
      repeated: true,
    });
    await callAs(server, alice, 'messages.delete', { conversation: group.id, seq });
    expect(await send(server, alice, group.id, 'frist', input)).toMatchObject({
      seq,
      text: '',
      deleted: true,
      client_id: 'laptop-2',
      repeated: true,
    });
  });

  test('says that the message was removed when a retention rule took it before the repeat', async () => {
    const other = await server.createGroup('Removed');
    await server.operate('groups.add-member', { group: other.id, user: 'alice' });
    const { seq } = await send(server, alice, other.id, 'once', { client_id: 'laptop-3' });
    await server.database.query((sql) =>
      sql.begin(async (tx) => {
        await tx`update conversation_head set first_seq = ${seq + 1} where conversation_id = ${other.id}`;
        await tx`delete from message where conversation_id = ${other.id}`;
      }),
    );
    await expect(send(server, alice, other.id, 'once', { client_id: 'laptop-3' })).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('retention rule'),
    });
  });
});

test('a client_id is told to the sender alone, wherever the message is read', async () => {
  const { seq, rev } = await send(server, alice, group.id, 'whose zebra', { client_id: 'laptop-4' });
  const read = async (person: TestPerson): Promise<object[]> => {
    const found = await eventually(
      () => callAs<{ messages: object[] }>(server, person, 'messages.search', { text: 'zebra' }),
      ({ messages }) => messages.length > 0,
    );
    const page = await changes(server, person, { conversation: group.id, after_rev: rev - 1 });
    return [(await newest(person)) as object, page.changes[0]!.message!, ...found.messages];
  };
  const [own, others] = [await read(alice), await read(bob)];
  expect(own).toHaveLength(3);
  expect(others).toHaveLength(3);
  for (const message of own) expect(message).toMatchObject({ seq, client_id: 'laptop-4' });
  for (const message of others) {
    expect(message).toMatchObject({ seq, text: 'whose zebra' });
    expect(message).not.toHaveProperty('client_id');
  }
});
