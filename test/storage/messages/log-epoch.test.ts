import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Seq } from '../../../src/model/ids.ts';
import { readLogEpoch, raiseLogEpoch } from '../../../src/storage/messages/log-epoch.ts';
import { eraseMessage, updateMessageText } from '../../../src/storage/messages/messages.ts';
import { insertNotice } from '../../../src/storage/messages/notices.ts';
import { writePosts, type FlushResult, type Post } from '../../../src/storage/messages/write-posts.ts';
import { Connection } from '../../../src/storage/db/connection.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { isWaiting, keyedPost, lockHead, makeGroups, makeMembers, post, until, type StoredGroup } from '../fixture.ts';

let database: TestDatabase;
let group: StoredGroup;
beforeEach(async () => {
  database = await createTestDatabase();
  [group] = (await makeGroups(database, 1)) as [StoredGroup];
});
afterEach(() => database.drop());

const raise = (): Promise<number> => database.query((sql) => raiseLogEpoch(sql));
const write = (...posts: Post[]): Promise<FlushResult[]> => database.query((sql) => writePosts(sql, posts));
const head = async (): Promise<object> => {
  const [row] = await database.query(
    (sql) => sql`select last_rev, epoch, epoch_rev from conversation_head where conversation_id = ${group.id}`,
  );
  return { ...row };
};
/** The epochs of the rows of a table, in the order of their revs. */
const epochs = async (table: 'message' | 'notice' | 'hook_event'): Promise<number[]> =>
  (await database.query((sql) => sql`select epoch from ${sql(table)} order by rev`)).map(({ epoch }) => Number(epoch));

const minuteNow = (): Promise<number> =>
  database.query(
    async (sql) =>
      (await sql<{ minute: number }[]>`select floor(extract(epoch from now()) / 60)::int as minute`)[0]!.minute,
  );

describe('the epoch of the log', () => {
  test('is 0 until it is raised, to the minute of the database or one more than it was', async () => {
    expect(await database.query((sql) => readLogEpoch(sql))).toBe(0);
    const before = await minuteNow();
    const first = await raise();
    expect(first).toBeGreaterThanOrEqual(before);
    expect(first).toBeLessThanOrEqual(await minuteNow());
    await database.query((sql) => sql`update setting set value = ${String(first + 1_000)} where name = 'log_epoch'`);
    expect(await raise()).toBe(first + 1_001);
    expect(await database.query((sql) => readLogEpoch(sql))).toBe(first + 1_001);
  });

  test('is another one after each of several raises at once', async () => {
    const raised = await Promise.all([raise(), raise(), raise()]);
    expect(new Set(raised).size).toBe(3);
    expect(await database.query((sql) => readLogEpoch(sql))).toBe(Math.max(...raised));
  });

  test('is stamped by everything that writes to the log, and the head keeps behind which rev it began', async () => {
    const [member] = await makeMembers(database, group, ['ada']);
    await database.query(
      (sql) => sql`update conversation_head set wants_events = true where conversation_id = ${group.id}`,
    );
    await write(post(group, 'one'), post(group, 'two'));
    expect(await head()).toEqual({ last_rev: 2, epoch: 0, epoch_rev: 0 });
    const epoch = await raise();
    expect(await head()).toEqual({ last_rev: 2, epoch: 0, epoch_rev: 0 });

    const byMember = { admission: null, senderId: member! };
    expect(await write(post(group, 'three'))).toEqual([{ outcome: 'new', seq: 3, logEpoch: epoch }]);
    await write(post(group, 'four', byMember));
    await write(keyedPost(group, 'k', 'five'));
    const change = { conversationId: group.id, seq: 1 as Seq, actorId: member!, hops: 0 };
    await database.query((sql) =>
      sql.begin(async (tx) => {
        await updateMessageText(tx, change, 'edited');
        await eraseMessage(tx, { ...change, seq: 2 as Seq });
        await insertNotice(tx, { conversationId: group.id, kind: 'renamed', details: {} });
      }),
    );
    expect(await head()).toEqual({ last_rev: 8, epoch, epoch_rev: 2 });
    // An edited message keeps the epoch in which it was written.
    expect((await epochs('message')).toSorted((a, b) => a - b)).toEqual([0, 0, epoch, epoch, epoch]);
    expect(await epochs('notice')).toEqual([epoch]);
    expect(await epochs('hook_event')).toEqual([epoch, epoch]);

    const next = await raise();
    await database.query((sql) =>
      sql.begin((tx) => insertNotice(tx, { conversationId: group.id, kind: 'renamed', details: {} })),
    );
    expect(await head()).toEqual({ last_rev: 9, epoch: next, epoch_rev: 8 });
  });

  test('of a post that is repeated is that of the first one', async () => {
    await write(keyedPost(group, 'k', 'one'));
    await raise();
    const repeat = { outcome: 'repeat', seq: 1, logEpoch: 0, sameBody: true };
    expect(await write(keyedPost(group, 'k', 'one'))).toEqual([repeat]);
  });

  test('is raised behind all statements that began before it, and before all that begin later', async () => {
    const held = await lockHead(database.target, group.id);
    const early = new Connection(database.target, 'early');
    const raiser = new Connection(database.target, 'raiser');
    const late = new Connection(database.target, 'late');
    try {
      const first = early.run((sql) => writePosts(sql, [post(group, 'early')]), 60_000);
      await until(database, (sql) => isWaiting(sql, 'early'));
      let isRaised = false;
      const raised = raiser
        .run((sql) => raiseLogEpoch(sql), 60_000)
        .then((epoch) => {
          isRaised = true;
          return epoch;
        });
      await until(database, async (sql) => isRaised || isWaiting(sql, 'raiser'));
      expect(isRaised).toBe(false);
      const second = late.run((sql) => writePosts(sql, [post(group, 'late')]), 60_000);
      await until(database, (sql) => isWaiting(sql, 'late'));
      await held.release();
      const epoch = await raised;
      expect(await first).toEqual([{ outcome: 'new', seq: 1, logEpoch: 0 }]);
      expect(await second).toEqual([{ outcome: 'new', seq: 2, logEpoch: epoch }]);
      expect(await head()).toEqual({ last_rev: 2, epoch, epoch_rev: 1 });
    } finally {
      for (const connection of [early, raiser, late]) connection.close();
    }
  });
});
