import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { callAs } from '../../support/call.ts';
import type { TestPerson } from '../../support/people.ts';
import { Receiver } from '../../support/receiver.ts';
import { postJson, TestServer, type TestGroup } from '../../support/server.ts';
import { changes, history, joined, privateOf, send, withScopes } from '../conversation-calls.ts';

let server: TestServer;
let group: TestGroup;
let owner: TestPerson;
let admin: TestPerson;
let alice: TestPerson;
let bob: TestPerson;
beforeAll(async () => {
  server = await TestServer.start();
  group = await server.createGroup('Operations');
  owner = await joined(server, 'olga', group.id, 'owner');
  admin = await joined(server, 'adam', group.id, 'admin');
  alice = await joined(server, 'alice', group.id);
  bob = await joined(server, 'bob', group.id);
});
afterAll(() => server.stop());

const edit = (person: TestPerson, seq: number, text: string, conversation = group.id) =>
  callAs(server, person, 'messages.edit', { conversation, seq, text });
const erase = (person: TestPerson, seq: number, conversation = group.id) =>
  callAs(server, person, 'messages.delete', { conversation, seq });
const head = async (conversation = group.id): Promise<number> =>
  (await changes(server, alice, { conversation, after_rev: 1_000_000 })).rev;
const stored = (seq: number) =>
  server.database.query(async (sql) => {
    const rows = await sql`select * from message where conversation_id = ${group.id} and seq = ${seq}`;
    return rows[0]!;
  });

describe('messages.edit', () => {
  test('gives a message another text and the next rev, and leaves its place and its time', async () => {
    const { seq } = await send(server, alice, group.id, 'teh text');
    const before = (await history(server, bob, { conversation: group.id, limit: 1 })).messages[0]!;
    const edited = await edit(alice, seq, 'the text, @bob');
    expect(edited).toEqual({
      ...before,
      rev: before.rev + 1,
      text: 'the text, @bob',
      edited_at: expect.any(String),
      mentions: ['bob'],
    });
    expect((await history(server, bob, { conversation: group.id, limit: 1 })).messages).toEqual([edited]);
    expect(await head()).toBe(edited.rev);
  });

  test('with the text that is there changes nothing', async () => {
    const { seq } = await send(server, alice, group.id, 'same');
    const rev = await head();
    expect(await edit(alice, seq, 'same')).toMatchObject({ rev, text: 'same' });
    expect(await head()).toBe(rev);
  });

  test("is the author's, and with a notice that says so the owner's and the admins'", async () => {
    const { seq } = await send(server, alice, group.id, 'mine');
    await expect(edit(bob, seq, 'ours')).rejects.toMatchObject({ code: 'forbidden', status: 403 });
    expect(await stored(seq)).toMatchObject({ text: 'mine', edited_at: null });
    await postJson(group.webhook, { text: 'from outside' });
    await expect(edit(bob, seq + 1, 'changed')).rejects.toMatchObject({ code: 'forbidden' });
    const before = await head();
    expect(await edit(admin, seq, 'put right')).toMatchObject({ text: 'put right', sender: { nick: 'alice' } });
    expect(await edit(owner, seq + 1, 'from outside, put right')).toMatchObject({ sender: { kind: 'webhook' } });
    const { changes } = await callAs(server, bob, 'conversations.sync', { conversation: group.id, after_rev: before });
    expect(changes).toMatchObject([
      { rev: before + 1, message: { seq, text: 'put right' } },
      { rev: before + 2, notice: { kind: 'message_edited', actor: { nick: 'adam' }, details: { seq } } },
      { rev: before + 3, message: { seq: seq + 1 } },
      { rev: before + 4, notice: { kind: 'message_edited', actor: { nick: 'olga' }, details: { seq: seq + 1 } } },
    ]);
  });

  test('is of a message that is there, with a text that could be sent', async () => {
    const { seq } = await send(server, alice, group.id, 'mine');
    await postJson(group.webhook, { text: 'from outside' });
    await expect(edit(alice, seq + 2, 'x')).rejects.toMatchObject({ code: 'not_found' });
    await expect(edit(alice, 0, 'x')).rejects.toMatchObject({ code: 'invalid_input' });
    await expect(edit(alice, seq, ' ')).rejects.toMatchObject({ code: 'invalid_input' });
    await expect(edit(alice, seq, 'x'.repeat(40_001))).rejects.toMatchObject({ code: 'too_large' });
    expect(await stored(seq)).toMatchObject({ text: 'mine', edited_at: null });
  });

  test('needs the scope of a bot', async () => {
    const { seq } = await send(server, alice, group.id, 'by hand');
    const reader = await withScopes(server, alice, ['messages:read']);
    const writer = await withScopes(server, alice, ['messages:write']);
    await expect(edit(reader, seq, 'x')).rejects.toMatchObject({ code: 'missing_scope' });
    await expect(erase(reader, seq)).rejects.toMatchObject({ code: 'missing_scope' });
    expect(await edit(writer, seq, 'by machine')).toMatchObject({ text: 'by machine' });
  });

  test('of many at once gives each its own rev', async () => {
    const seqs = await Promise.all(
      Array.from({ length: 10 }, async (_, i) => (await send(server, alice, group.id, `${i}`)).seq),
    );
    const answers = await Promise.all([
      ...seqs.map((seq) => edit(alice, seq, `edited ${seq}`)),
      ...seqs.slice(0, 5).map((seq) => edit(alice, seq, `edited again ${seq}`)),
      ...seqs.map((_, i) => send(server, bob, group.id, `meanwhile ${i}`)),
    ]);
    expect(new Set(answers.map(({ rev }) => rev)).size).toBe(25);
  });
});

describe('messages.delete', () => {
  test('erases the text and leaves the place', async () => {
    const { seq } = await send(server, alice, group.id, 'secret plan');
    const deleted = await erase(alice, seq);
    expect(deleted).toMatchObject({ seq, text: '', deleted: true, mentions: [] });
    expect(await stored(seq)).toMatchObject({ text: '', label: null, icon_url: null, deleted_at: expect.any(Date) });
    expect(await erase(alice, seq)).toEqual(deleted);
    await expect(edit(alice, seq, 'back')).rejects.toMatchObject({ code: 'not_found' });
    expect((await history(server, bob, { conversation: group.id, limit: 1 })).messages).toEqual([deleted]);
  });

  test("is the author's, the owner's and the admins', also of what a webhook posted", async () => {
    const { seq } = await send(server, alice, group.id, 'mine');
    await expect(erase(bob, seq)).rejects.toMatchObject({ code: 'forbidden' });
    expect(await erase(admin, seq)).toMatchObject({ deleted: true, sender: { nick: 'alice' } });
    await postJson(group.webhook, { text: 'spam', username: 'spammer', icon_url: 'https://example.org/i.png' });
    await expect(erase(bob, seq + 1)).rejects.toMatchObject({ code: 'forbidden' });
    const gone = await erase(owner, seq + 1);
    expect(gone).toMatchObject({ deleted: true, sender: { kind: 'webhook' } });
    expect(gone).not.toHaveProperty('label');
    expect(await stored(seq + 1)).toMatchObject({ text: '', label: null, icon_url: null });
  });

  test("in a private conversation is the author's alone", async () => {
    const id = await privateOf(server, alice, bob);
    const { seq } = await send(server, alice, id, 'psst');
    await expect(erase(bob, seq, id)).rejects.toMatchObject({ code: 'forbidden' });
    expect(await erase(alice, seq, id)).toMatchObject({ deleted: true });
  });

  test('in an archived group is left to owners and admins; nothing is edited there', async () => {
    const closed = await server.createGroup('Closed');
    for (const [nick, role] of [
      ['olga', 'owner'],
      ['alice', 'member'],
    ]) {
      await server.operate('groups.add-member', { group: closed.id, user: nick, role });
    }
    const { seq } = await send(server, alice, closed.id, 'before');
    await server.operate('groups.archive', { group: closed.id });
    await expect(edit(alice, seq, 'after', closed.id)).rejects.toMatchObject({ code: 'group_archived' });
    await expect(erase(alice, seq, closed.id)).rejects.toMatchObject({ code: 'group_archived' });
    expect(await erase(owner, seq, closed.id)).toMatchObject({ deleted: true });
  });
});

describe('a forwarded message', () => {
  test('goes out as it is in the moment of the attempt: edited, or deleted', async () => {
    const receiver = await Receiver.start();
    try {
      const other = await server.createGroup('Forwarded');
      await server.operate('groups.add-member', { group: other.id, user: 'alice' });
      receiver.answer = () => 500;
      await postJson(`${other.webhook}/reverse`, { url: receiver.url() });
      await send(server, alice, other.id, 'first');
      await receiver.received(1);
      await send(server, alice, other.id, 'wrogn');
      await send(server, alice, other.id, 'not meant for you');
      await edit(alice, 2, 'right', other.id);
      await erase(alice, 3, other.id);
      receiver.answer = () => 200;
      const hooks = await server.operate<{ hooks: { id: number }[] }>('hooks.list', { group: other.id });
      await server.operate('hooks.redeliver', { hook: hooks.hooks[0]!.id, from: `${other.id}:1` });
      const arrivals = await receiver.received(4);
      expect(arrivals.slice(2).map(({ body }) => body.data.message)).toMatchObject([
        { seq: 2, text: 'right' },
        { seq: 3, text: '', deleted: true },
      ]);
    } finally {
      await receiver.stop();
    }
  });
});
