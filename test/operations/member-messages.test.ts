import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import { createPerson, type TestPerson } from '../support/people.ts';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';
import { block, history, joined, privateOf, send, withScopes } from './conversation-calls.ts';

let server: TestServer;
let group: TestGroup;
let alice: TestPerson;
let bob: TestPerson;
let eve: TestPerson;
beforeAll(async () => {
  server = await TestServer.start();
  group = await server.createGroup('Operations');
  alice = await joined(server, 'alice', group.id, 'owner');
  bob = await joined(server, 'bob', group.id);
  eve = await createPerson(server, 'eve');
});
afterAll(() => server.stop());

const readSeq = async (person: TestPerson, conversation: number): Promise<number> => {
  const [row] = await server.database.query(
    (sql) => sql<{ seq: number }[]>`
      select read_seq as seq from membership where account_id = ${person.id} and conversation_id = ${conversation}`,
  );
  return row!.seq;
};

describe('messages.send', () => {
  test('posts as the caller, whose read position is at the message then', async () => {
    const sent = await send(server, alice, group.id, 'hello');
    expect(sent).toMatchObject({ id: `${group.id}:${sent.seq}`, conversation: group.id, repeated: false });
    const { messages } = await history(server, bob, { conversation: group.id, limit: 1 });
    expect(messages).toEqual([
      {
        id: sent.id,
        seq: sent.seq,
        rev: expect.any(Number),
        sender: { id: alice.id, name: 'alice', nick: 'alice', kind: 'user' },
        text: 'hello',
        sent_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        mentions: [],
        attachments: [],
      },
    ]);
    expect(await readSeq(alice, group.id)).toBe(sent.seq);
    expect(await readSeq(bob, group.id)).toBeLessThan(sent.seq);
  });

  test('with a client_id is posted once, and its read position moves with what is new', async () => {
    const first = await send(server, alice, group.id, 'once', { client_id: 'phone-1' });
    await postJson(group.webhook, { text: 'between' });
    expect(await send(server, alice, group.id, 'once', { client_id: 'phone-1' })).toEqual({ ...first, repeated: true });
    expect(await readSeq(alice, group.id)).toBe(first.seq);
    await expect(send(server, alice, group.id, 'other', { client_id: 'phone-1' })).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    });
    expect(await send(server, bob, group.id, 'once', { client_id: 'phone-1' })).toMatchObject({
      seq: first.seq + 2,
      repeated: false,
    });
    expect(await readSeq(bob, group.id)).toBe(first.seq + 2);
  });

  test('many at once, with client ids and without, from several members and the webhook, get one seq each', async () => {
    const texts = Array.from({ length: 60 }, (_, i) => `at once ${i}`);
    const seqs = await Promise.all(
      texts.map(async (text, i) => {
        if (i % 4 === 0) return Number((await postJson(group.webhook, { text })).body.id.split(':')[1]);
        const key = i % 3 === 0 ? { client_id: `c${i}` } : {};
        return (await send(server, i % 2 === 0 ? alice : bob, group.id, text, key)).seq;
      }),
    );
    expect(new Set(seqs).size).toBe(60);
    expect(Math.max(...seqs) - Math.min(...seqs)).toBe(59);
    const { messages } = await history(server, alice, {
      conversation: group.id,
      after: Math.min(...seqs) - 1,
      limit: 60,
    });
    expect(messages.map(({ seq, text }) => [seq, text])).toEqual(
      texts.map((text, i) => [seqs[i]!, text] as const).sort(([a], [b]) => a - b),
    );
  });

  test('is refused to strangers, former members, bots without the scope, and for somebody else', async () => {
    const mallory = await joined(server, 'mallory', group.id);
    await send(server, mallory, group.id, 'still here');
    await server.operate('groups.remove-member', { group: group.id, user: 'mallory' });
    const last = (await history(server, alice, { conversation: group.id, limit: 1 })).messages[0]!.seq;
    const reader = await withScopes(server, bob, ['messages:read']);
    const writer = await withScopes(server, bob, ['messages:write']);
    await expect(send(server, mallory, group.id, 'x')).rejects.toMatchObject({ code: 'not_found', status: 404 });
    await expect(send(server, eve, group.id, 'x')).rejects.toMatchObject({ code: 'not_found' });
    await expect(send(server, eve, 999_999, 'x')).rejects.toThrow('You are in no conversation 999999');
    await expect(send(server, reader, group.id, 'x')).rejects.toMatchObject({ code: 'missing_scope' });
    await expect(send(server, alice, group.id, 'x', { as: 'bob' })).rejects.toMatchObject({ code: 'forbidden' });
    await expect(callAs(server, null, 'messages.send', { conversation: group.id, text: 'x' })).rejects.toMatchObject({
      code: 'unauthenticated',
    });
    await expect(
      callAs(server, alice, 'messages.send', { conversation: 'Operations', text: 'x' }),
    ).rejects.toMatchObject({ code: 'invalid_input' });
    expect((await send(server, writer, group.id, 'a bot')).seq).toBe(last + 1);
  });

  test('is refused to the administrator of the installation who is no member', async () => {
    const admin = await createPerson(server, 'root', { admin: true });
    await expect(send(server, admin, group.id, 'x')).rejects.toMatchObject({ code: 'not_found' });
    await expect(history(server, admin, { conversation: group.id })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('is refused in an archived group', async () => {
    const closed = await server.createGroup('Closed');
    const carol = await joined(server, 'carol', closed.id);
    await server.operate('groups.archive', { group: closed.id });
    await expect(send(server, carol, closed.id, 'x')).rejects.toMatchObject({ code: 'group_archived' });
    await expect(send(server, carol, closed.id, 'x', { client_id: 'k' })).rejects.toMatchObject({
      code: 'group_archived',
    });
  });
});

describe('in a private conversation', () => {
  test('the two write to each other, and nobody else does', async () => {
    const id = await privateOf(server, alice, bob);
    await send(server, alice, id, 'psst');
    await send(server, bob, id, 'yes?', { client_id: 'p1' });
    const { messages } = await history(server, alice, { conversation: id });
    expect(messages.map(({ sender, text }) => [sender.nick, text])).toEqual([
      ['alice', 'psst'],
      ['bob', 'yes?'],
    ]);
    await expect(send(server, eve, id, 'me too')).rejects.toMatchObject({ code: 'not_found' });
    await expect(server.operate('messages.send', { conversation: id, as: 'alice', text: 'x' })).rejects.toThrow(
      `You are in no conversation ${id}`,
    );
  });

  test('who is blocked by the other one can neither write nor edit, whom that one blocked no less', async () => {
    const [carl, dora] = [await createPerson(server, 'carl'), await createPerson(server, 'dora')];
    const id = await privateOf(server, carl, dora);
    const { seq } = await send(server, carl, id, 'hello');
    await block(server, dora, carl);
    for (const more of [{}, { client_id: 'k' }]) {
      await expect(send(server, carl, id, 'why?', more)).rejects.toMatchObject({ code: 'blocked', status: 403 });
    }
    await expect(callAs(server, carl, 'messages.edit', { conversation: id, seq, text: 'why?' })).rejects.toMatchObject({
      code: 'blocked',
    });
    expect(await send(server, dora, id, 'because')).toMatchObject({ seq: seq + 1 });
    expect(await callAs(server, carl, 'messages.delete', { conversation: id, seq })).toMatchObject({ deleted: true });
    // A block has no effect in groups.
    await server.operate('groups.add-member', { group: group.id, user: 'carl' });
    await server.operate('groups.add-member', { group: group.id, user: 'dora' });
    await send(server, carl, group.id, 'hello all');
  });
});
