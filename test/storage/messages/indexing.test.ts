import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { AccountId, ConversationId, Seq } from '../../../src/model/ids.ts';
import type { Database } from '../../../src/storage/database.ts';
import { indexNext, findUnindexedConversations } from '../../../src/storage/messages/indexing.ts';
import { eraseMessage, lockHeadAndReadMessage, updateMessageText } from '../../../src/storage/messages/messages.ts';
import { MessageLog } from '../../../src/storage/messages/message-log.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import {
  holdOpen,
  logOptions,
  makeGroups,
  makeMembers,
  post,
  removeMembers,
  until,
  type StoredGroup,
} from '../fixture.ts';

let test1: TestDatabase;
let database: Database;
let log: MessageLog;
let group: StoredGroup;
let alice: AccountId;
let bob: AccountId;
beforeEach(async () => {
  test1 = await createTestDatabase();
  database = test1.open();
  log = new MessageLog(database.intake, logOptions());
  [group] = (await makeGroups(test1, 1)) as [StoredGroup];
  [alice, bob] = (await makeMembers(test1, group, ['alice', 'bob'])) as [AccountId, AccountId];
});
afterEach(async () => {
  await log.stop();
  await test1.drop();
});

const write = (text: string, senderId = alice) => log.append(post(group, text, { admission: null, senderId }));

const edit = (seq: number, text: string | null): Promise<unknown> => {
  const key = { conversationId: group.id, seq: seq as Seq };
  return database.general.transaction(async (tx) => {
    await lockHeadAndReadMessage(tx, { ...key, accountId: alice });
    const change = { ...key, actorId: alice, hops: 0 };
    return text === null ? eraseMessage(tx, change) : updateMessageText(tx, change, text);
  });
};

/** Runs turns of the indexer until no message is left. Returns the number of messages in each turn. */
async function indexAll(id = group.id): Promise<number[]> {
  const turns: number[] = [];
  for (;;) {
    const turn = await indexNext(database.general, id);
    if (!turn.acquired) throw new Error('another node is at it');
    turns.push(turn.messages);
    if (!turn.more) return turns;
  }
}

const unindexed = (after: number, limit: number): Promise<ConversationId[]> =>
  test1.query((sql) => findUnindexedConversations(sql, after, limit));

const words = (): Promise<[number, string][]> =>
  test1.query(async (sql) => {
    const rows = await sql<{ seq: number; words: string }[]>`
      select seq, array_to_string(tsvector_to_array(document), ' ') as words from search_index order by seq`;
    return rows.map((row) => [row.seq, row.words]);
  });

const mentions = (): Promise<[number, AccountId][]> =>
  test1.query(async (sql) => {
    const rows = await sql<{ seq: number; id: AccountId }[]>`
      select seq, account_id as id from mention order by seq, account_id`;
    return rows.map((row) => [row.seq, row.id]);
  });

describe('indexing a conversation', () => {
  test('finds the words in lower case, in any script, and the members that are mentioned', async () => {
    await write('Привет @BOB, Übermut und ЁЛКА');
    await write('@alice @nobody @bob.');
    await indexAll();
    expect(await words()).toEqual([
      [1, 'bob und übermut привет ёлка'],
      [2, 'alice bob nobody'],
    ]);
    // The index has no mention of an account by itself, and only members are mentioned.
    expect(await mentions()).toEqual([
      [1, bob],
      [2, bob],
    ]);
  });

  test('follows edits and deletions', async () => {
    await write('wrong word for @bob');
    await write('to be deleted, @bob');
    await write('right, and now @bob');
    await indexAll();
    await edit(1, 'right word');
    await edit(2, null);
    expect(await words()).toHaveLength(2);
    await edit(3, '@bob again');
    expect(await indexAll()).toEqual([3]);
    expect(await words()).toEqual([
      [1, 'right word'],
      [3, 'again bob'],
    ]);
    expect(await mentions()).toEqual([[3, bob]]);
    expect(await unindexed(0, 10)).toEqual([]);
  });

  test('does nothing twice, passes over notices, and goes on where it was', async () => {
    await write('one');
    expect(await indexAll()).toEqual([1]);
    expect(await indexAll()).toEqual([0]);
    await removeMembers(test1, group, [bob]);
    expect(await indexAll()).toEqual([0]);
    await write('two');
    expect(await indexAll()).toEqual([1]);
    expect(await words()).toHaveLength(2);
  });

  test('takes bounded turns, and one for the largest message', async () => {
    const many = Array.from({ length: 450 }, (_, i) => `message ${i}`);
    await Promise.all(many.map((text) => write(text)));
    expect(await indexAll()).toEqual([200, 200, 50]);
    for (let i = 0; i < 5; i += 1) await write('\u{1F600}'.repeat(40_000));
    const turns = await indexAll();
    expect(turns.reduce((a, b) => a + b)).toBe(5);
    expect(Math.max(...turns)).toBeLessThan(5);
  });

  test('stands texts that are hard to take apart', async () => {
    const hostile = [
      'x'.repeat(40_000),
      Array.from({ length: 10_000 }, (_, i) => i.toString(36)).join(' '),
      "'\\ :*&|!<-> \u0001 \u{10FFFF} \u202e",
      `${'a@'.repeat(19_000)}bob`,
      'https://example.org/' + 'path/'.repeat(1_000),
    ];
    for (const text of hostile) await write(text);
    expect(await indexAll()).toEqual([hostile.length]);
    expect((await words()).map(([seq]) => seq)).toEqual([1, 2, 3, 4, 5]);
  });

  test('leaves nothing half done when its process dies, and leaves alone what another node has in hand', async () => {
    await write('one');
    await write('two');
    await indexAll();
    await write('three');
    const other = await holdOpen(
      test1.target,
      (tx) => tx`select from search_index_progress where conversation_id = ${group.id} for update`,
    );
    expect(await indexNext(database.general, group.id)).toEqual({ acquired: false });
    await other.release();
    // Here the session ends between its last statement and the commit.
    let pid = 0;
    const killed = test1.open().general.transaction(async (tx) => {
      pid = (await tx<{ pid: number }[]>`select pg_backend_pid() as pid`)[0]!.pid;
      await tx`update search_index_progress set indexed_rev = 100`;
      await tx`select pg_terminate_backend(pg_backend_pid())`;
    });
    await expect(killed).rejects.toThrow();
    // The session is visible in pg_stat_activity until it has released the row.
    await until(test1, async (sql) => (await sql`select from pg_stat_activity where pid = ${pid}`).length === 0);
    expect(await indexAll()).toEqual([1]);
    expect(await words()).toHaveLength(3);
  });

  test('by several nodes at once, while others write, edit and delete, ends with what the messages say', async () => {
    let writing = true;
    const nodes = [database, test1.open(), test1.open()].map(async ({ general }) => {
      for (let last = false; ;) {
        const turn = await indexNext(general, group.id);
        if (last && turn.acquired && !turn.more) return;
        last = !writing;
      }
    });
    await Promise.all(
      Array.from({ length: 4 }, async (_, index) => {
        for (let i = 0; i < 40; i += 1) {
          const posted = await write(`w${index} m${i} @bob`);
          if (posted.outcome === 'refused') throw new Error('refused');
          if (i % 4 === 0) await edit(Math.max(1, posted.seq - 9), `edited w${index} m${i}`);
          if (i % 7 === 0) await edit(Math.max(1, posted.seq - 11), null);
        }
      }),
    );
    writing = false;
    await Promise.all(nodes);
    await indexAll();
    const wrong = await test1.query(
      (sql) => sql`
        select m.seq from message m left join search_index w using (conversation_id, seq)
        where w.document is distinct from case when m.deleted_at is null then to_tsvector('simple', m.text) end
          or (m.text like '%@bob%') <> exists (select from mention n where n.seq = m.seq)`,
    );
    expect([...wrong]).toEqual([]);
  });
});

test('what is behind is found in pages, with what was never indexed', async () => {
  const others = await makeGroups(test1, 3);
  for (const each of others) await log.append(post(each, 'hello'));
  await log.append(post(group, 'hello'));
  await indexAll(others[1]!.id);
  const behind = [group, others[0]!, others[2]!].map(({ id }) => id).sort((a, b) => a - b);
  expect(await unindexed(0, 2)).toEqual(behind.slice(0, 2));
  expect(await unindexed(behind[1]!, 2)).toEqual(behind.slice(2));
  expect(await indexNext(database.general, 99_999 as ConversationId)).toEqual({ acquired: false });
});
