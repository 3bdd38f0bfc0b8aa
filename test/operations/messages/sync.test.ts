import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { AccountId, ConversationId } from '../../../src/model/ids.ts';
import { insertNotice } from '../../../src/storage/messages/notices.ts';
import { callAs } from '../../support/call.ts';
import { PATIENT } from '../../support/config.ts';
import type { TestPerson } from '../../support/people.ts';
import { TestServer } from '../../support/server.ts';
import { changes, history, joined, send } from '../conversation-calls.ts';
import type { SerializedChange } from '../../../src/operations/core/serializers.ts';

let server: TestServer;
let alice: TestPerson;
let bob: TestPerson;
beforeAll(async () => {
  server = await TestServer.start({ ...PATIENT, limits: { sessionRequestRate: 10_000, sessionRequestBurst: 10_000 } });
  const lobby = await server.createGroup('Lobby');
  alice = await joined(server, 'alice', lobby.id);
  bob = await joined(server, 'bob', lobby.id);
});
afterAll(() => server.stop());

/** Creates a group with alice and bob. */
async function makeGroup(title: string): Promise<ConversationId> {
  const { id } = await server.createGroup(title);
  for (const user of ['alice', 'bob']) await server.operate('groups.add-member', { group: id, user });
  return id as ConversationId;
}

const notice = (conversationId: ConversationId, kind: string) =>
  server.database.query((sql) =>
    sql.begin(async (tx) => {
      // This insert waits for a lock until all other writers have committed, also on a busy machine.
      await tx`set local lock_timeout = '20s'`;
      await insertNotice(tx, { conversationId, kind, actorId: alice.id as AccountId, details: { title: kind } });
    }),
  );

/** Fetches pages until there are no more, as a client does. */
async function pageThrough(
  conversation: number,
  limit: number,
  from = 0,
): Promise<{ all: SerializedChange[]; rev: number }> {
  const all: SerializedChange[] = [];
  let rev = from;
  for (;;) {
    const page = await changes(server, bob, { conversation, after_rev: rev, limit });
    all.push(...page.changes);
    expect(page.changes.length).toBeLessThanOrEqual(limit);
    if (page.more) expect(page.changes.length).toBeGreaterThan(0);
    rev = page.rev;
    if (!page.more) return { all, rev };
  }
}

describe('conversations.sync', () => {
  test('gives messages, edits, deletions and notices in the order of their revs, in pages of any size', async () => {
    const group = await makeGroup('Mixed');
    const { rev: from } = await changes(server, bob, { conversation: group, after_rev: 0 });
    await send(server, alice, group, 'one');
    await notice(group, 'renamed');
    await send(server, alice, group, 'two');
    await send(server, alice, group, 'three');
    await notice(group, 'described');
    await callAs(server, alice, 'messages.edit', { conversation: group, seq: 1, text: 'one, edited' });
    await callAs(server, alice, 'messages.delete', { conversation: group, seq: 2 });
    const expected = [
      // The first two messages have newer revs now, under which their changes come.
      [from + 2, 'renamed'],
      [from + 4, 'three'],
      [from + 5, 'described'],
      [from + 6, 'one, edited'],
      [from + 7, ''],
    ];
    for (const limit of [1, 2, 3, 5, 100]) {
      const { all, rev } = await pageThrough(group, limit, from);
      expect(all.map((change) => [change.rev, change.message?.text ?? change.notice?.kind])).toEqual(expected);
      expect(rev).toBe(from + 7);
    }
    const { all } = await pageThrough(group, 100, from);
    expect(all[0]).toEqual({
      rev: from + 2,
      notice: {
        kind: 'renamed',
        actor: { id: alice.id, name: 'alice', nick: 'alice', kind: 'user' },
        details: { title: 'renamed' },
        at: expect.any(String),
        after_seq: 1,
      },
    });
    expect(all[3]!.message).toMatchObject({ seq: 1, rev: from + 6, edited_at: expect.any(String) });
    expect(all[4]!.message).toMatchObject({ seq: 2, rev: from + 7, deleted: true });
  });

  test('tells a client that is ahead, as after a restored backup, where the conversation is', async () => {
    const group = await makeGroup('Ahead');
    await send(server, alice, group, 'one');
    const { rev } = await changes(server, bob, { conversation: group, after_rev: 0 });
    expect(await changes(server, bob, { conversation: group, after_rev: rev })).toEqual({
      changes: [],
      rev,
      more: false,
    });
    expect(await changes(server, bob, { conversation: group, after_rev: rev + 50 })).toEqual({
      changes: [],
      rev,
      more: false,
    });
  });

  test('ends a page where its texts grow large, and gives the largest message all the same', async () => {
    const group = await makeGroup('Large');
    for (let i = 0; i < 7; i += 1) await send(server, alice, group, '\u{1F600}'.repeat(40_000));
    const first = await changes(server, bob, { conversation: group, after_rev: 0, limit: 500 });
    expect(first.more).toBe(true);
    const { all } = await pageThrough(group, 500);
    expect(all.flatMap(({ message }) => message?.seq ?? [])).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  test('loses nothing while others write, edit and delete, and never shows an older state after a newer one', async () => {
    const group = await makeGroup('Busy');
    let writing = true;
    const writers = Array.from({ length: 4 }, async (_, index) => {
      for (let i = 0; i < 25; i += 1) {
        const { seq } = await send(server, alice, group, `writer ${index}, message ${i}`);
        const target = Math.max(1, seq - ((i * 7) % 20));
        const input = { conversation: group, seq: target };
        // An error is no failure of this test: another writer may have deleted the message in between.
        if (i % 3 === 0) await callAs(server, alice, 'messages.delete', input);
        else if (i % 3 === 1) {
          await callAs(server, alice, 'messages.edit', { ...input, text: `edited ${index} ${i}` }).catch((error) => {
            expect(error).toMatchObject({ code: 'not_found' });
          });
        } else await notice(group, `note ${index} ${i}`);
      }
    });
    const readers = [1, 2, 7, 500].map(async (limit) => {
      const messages = new Map<number, { rev: number; text: string; deleted: boolean }>();
      const notices = new Map<number, string>();
      let rev = 0;
      for (let last = false; ;) {
        const page = await changes(server, bob, { conversation: group, after_rev: rev, limit });
        for (const change of page.changes) {
          expect(change.rev).toBeGreaterThan(rev);
          rev = change.rev;
          if (change.message === undefined) notices.set(change.rev, change.notice!.kind);
          else {
            const { seq, text, deleted = false } = change.message;
            messages.set(seq, { rev: change.rev, text, deleted });
          }
        }
        expect(page.rev).toBeGreaterThanOrEqual(rev);
        rev = page.rev;
        if (last && !page.more) return { messages, notices, rev };
        last = !writing && !page.more;
      }
    });
    await Promise.all(writers);
    writing = false;
    const { messages } = await history(server, bob, { conversation: group, after: 0, limit: 200 });
    const expected = messages.map(({ seq, rev, text, deleted = false }) => [seq, { rev, text, deleted }]);
    expect(expected).toHaveLength(100);
    for (const found of await Promise.all(readers)) {
      expect([...found.messages].sort(([a], [b]) => a - b)).toEqual(expected);
      expect([...found.notices.values()].filter((kind) => kind.startsWith('note'))).toHaveLength(32);
    }
  });
});
