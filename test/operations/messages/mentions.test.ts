import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { SerializedMessage } from '../../../src/operations/core/serializers.ts';
import { callAs } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestPerson } from '../../support/people.ts';
import { TestServer } from '../../support/server.ts';
import { history, joined, send } from '../conversation-calls.ts';

let server: TestServer;
let group: number;
let alice: TestPerson;
let bob: TestPerson;
beforeAll(async () => {
  server = await TestServer.start();
  ({ id: group } = await server.createGroup('Mentions'));
  alice = await joined(server, 'alice', group);
  bob = await joined(server, 'bob', group);
  // Every third of these 12 messages mentions bob.
  for (let n = 1; n <= 12; n += 1) await send(server, alice, group, n % 3 === 0 ? `@bob ${n}` : `${n} @alice`);
  await eventually(
    async () => (await mentions(bob)).seqs.length,
    (count) => count === 4,
  );
});
afterAll(() => server.stop());

async function mentions(
  person: TestPerson,
  input: object = {},
): Promise<{ seqs: number[]; next: number | null; messages: SerializedMessage[] }> {
  const { messages, next } = await callAs<{ messages: SerializedMessage[]; next: number | null }>(
    server,
    person,
    'mentions.list',
    { conversation: group, ...input },
  );
  return { seqs: messages.map(({ seq }) => seq), next, messages };
}

describe('mentions.list', () => {
  test("has the messages that mention the caller, as history shows them, and nobody else's", async () => {
    const { seqs, next, messages } = await mentions(bob);
    expect([seqs, next]).toEqual([[3, 6, 9, 12], null]);
    const shown = await history(server, bob, { conversation: group });
    expect(messages).toEqual(shown.messages.filter(({ mentions: nicks }) => nicks.includes('bob')));
    // A message does not mention its own sender.
    expect((await mentions(alice)).seqs).toEqual([]);
  });

  test('goes in pages of both directions, and finds the first unread one behind the read position', async () => {
    expect(await mentions(bob, { limit: 2 })).toMatchObject({ seqs: [9, 12], next: 9 });
    expect(await mentions(bob, { limit: 2, before: 9 })).toMatchObject({ seqs: [3, 6], next: null });
    expect(await mentions(bob, { limit: 1, after: 4 })).toMatchObject({ seqs: [6], next: 6 });
    expect(await mentions(bob, { limit: 3, after: 6 })).toMatchObject({ seqs: [9, 12], next: null });
    expect(await mentions(bob, { after: 12 })).toMatchObject({ seqs: [], next: null });
    await expect(mentions(bob, { after: 1, before: 2 })).rejects.toMatchObject({ code: 'invalid_input' });
  });

  test('has nothing of what was deleted, or removed by a retention rule', async () => {
    await callAs(server, alice, 'messages.delete', { conversation: group, seq: 9 });
    expect((await mentions(bob)).seqs).toEqual([3, 6, 12]);
    await server.database.query(
      (sql) => sql`update conversation_head set first_seq = 6 where conversation_id = ${group}`,
    );
    expect((await mentions(bob)).seqs).toEqual([6, 12]);
  });
});
