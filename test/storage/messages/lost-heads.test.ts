import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Rev, Seq } from '../../../src/model/ids.ts';
import type { Database } from '../../../src/storage/database.ts';
import { findLostHeads, insertLossNotice, readHeads } from '../../../src/storage/messages/lost-heads.ts';
import { MessageLog } from '../../../src/storage/messages/message-log.ts';
import { eraseMessage, updateMessageText } from '../../../src/storage/messages/messages.ts';
import { insertNotice } from '../../../src/storage/messages/notices.ts';
import { NOTICE_CHANGED_SEQ, UNKNOWN_CHANGED_SEQ, type WitnessedHead } from '../../../src/storage/messages/witness.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { logOptions, makeGroups, post, type StoredGroup } from '../fixture.ts';

let database: TestDatabase;
let pools: Database;
let group: StoredGroup;
let log: MessageLog;

beforeEach(async () => {
  database = await createTestDatabase();
  pools = database.open();
  [group] = (await makeGroups(database, 1)) as [StoredGroup];
  log = new MessageLog(pools.intake, logOptions());
  for (const text of ['one', 'two', 'three']) await log.append(post(group, text));
});
afterEach(async () => {
  await log.stop();
  await database.drop();
});

/** The entry of a witness (record of the newest changes) of a node that has just read the conversation. */
async function head(): Promise<WitnessedHead> {
  const [found] = await pools.general.run((sql) => readHeads(sql, [group.id]));
  return found!;
}

const edit = (seq: number, text: string): Promise<{ rev: Rev; at: Date }> =>
  pools.general.transaction((tx) =>
    updateMessageText(tx, { conversationId: group.id, seq: seq as Seq, actorId: group.accountId, hops: 0 }, text),
  );
const notice = (): Promise<Rev> =>
  pools.general.transaction((tx) => insertNotice(tx, { conversationId: group.id, kind: 'renamed', details: {} }));
const isLost = async (known: WitnessedHead): Promise<boolean> =>
  (await pools.general.run((sql) => findLostHeads(sql, [known]))).length > 0;

describe('what is known of a conversation is there', () => {
  test('after posts, edits, notices and deletions, and after later changes of the same', async () => {
    const known = [await head()];
    expect(known[0]).toMatchObject({ seq: 3, rev: 3, changedSeq: 3 });
    await edit(1, 'edited');
    known.push(await head());
    await notice();
    known.push(await head());
    await edit(1, 'edited again');
    known.push(await head());
    await pools.general.transaction((tx) =>
      eraseMessage(tx, { conversationId: group.id, seq: 3 as Seq, actorId: group.accountId, hops: 0 }),
    );
    known.push(await head());
    await log.append(post(group, 'four'));
    known.push(await head());
    expect(known.map(({ changedSeq }) => changedSeq)).toEqual([3, 1, NOTICE_CHANGED_SEQ, 1, 3, 4]);
    expect(await pools.general.run((sql) => findLostHeads(sql, known))).toEqual([]);
  });

  test('where only numbers are known', async () => {
    expect(await isLost({ ...(await head()), sentAtMs: 0, changedSeq: UNKNOWN_CHANGED_SEQ, changedAtMs: 0 })).toBe(
      false,
    );
  });

  test('where a message was removed altogether', async () => {
    const known = await head();
    await database.query((sql) => sql`delete from message where seq = 3`);
    expect(await isLost(known)).toBe(false);
  });
});

describe('something is missing', () => {
  test.each<[string, (known: WitnessedHead) => Partial<WitnessedHead>]>([
    ['a message', ({ seq }) => ({ seq: seq + 1, sentAtMs: 0 })],
    ['a change', ({ rev }) => ({ rev: rev + 1, changedSeq: UNKNOWN_CHANGED_SEQ })],
    ['a message whose number another one has', ({ sentAtMs }) => ({ sentAtMs: sentAtMs - 5_000 })],
    ['a change of a message at another moment', ({ changedAtMs }) => ({ changedAtMs: changedAtMs - 5_000 })],
    ['a change whose number another message has', () => ({ changedSeq: 1 })],
    ['a notice whose number a message has', () => ({ changedSeq: NOTICE_CHANGED_SEQ })],
    [
      'the conversation',
      ({ conversationId }) => ({ conversationId: (conversationId + 1_000) as typeof conversationId }),
    ],
  ])('%s', async (_, change) => {
    const known = await head();
    expect(await isLost(known)).toBe(false);
    expect(await isLost({ ...known, ...change(known) })).toBe(true);
  });

  test('an edit of which the message is older, and whose number passed on', async () => {
    const edited = await edit(1, 'edited');
    const known = await head();
    await database.query((sql) => sql`update message set rev = 1, edited_at = null where seq = 1`);
    await notice();
    expect(known.rev).toBe(edited.rev);
    expect(await isLost(known)).toBe(true);
  });

  test('a message whose number a notice has', async () => {
    await log.append(post(group, 'four'));
    const known = await head();
    await database.query(async (sql) => {
      await sql`delete from message where seq = 4`;
      await sql`update conversation_head set last_rev = 3`;
    });
    await notice();
    expect(await isLost({ ...known, seq: 3, sentAtMs: 0 })).toBe(true);
  });

  test('a notice whose number another notice has', async () => {
    await notice();
    const known = await head();
    expect(known.changedSeq).toBe(NOTICE_CHANGED_SEQ);
    await database.query((sql) => sql`update notice set at = at + interval '5 seconds'`);
    expect(await isLost(known)).toBe(true);
  });

  test('and is told with the numbers of both', async () => {
    const known = { ...(await head()), seq: 5, rev: 7 };
    const lost = await pools.general.run((sql) => findLostHeads(sql, [known]));
    expect(lost).toEqual([{ conversationId: group.id, knownSeq: 5, knownRev: 7, lastSeq: 3, lastRev: 3 }]);
  });
});

describe('the notice of a loss', () => {
  const tell = (epoch: number, lastSeq = 3, conversationId = group.id): Promise<boolean> =>
    pools.general.transaction((tx) =>
      insertLossNotice(tx, { conversationId, knownSeq: 5, knownRev: 7, lastSeq, lastRev: 3 }, epoch),
    );

  test('is written once for each epoch, however many nodes found it', async () => {
    expect((await Promise.all([tell(7), tell(7), tell(7)])).filter(Boolean)).toHaveLength(1);
    expect(await tell(8, 5)).toBe(true);
    const rows = await database.query((sql) => sql`select details from notice order by rev`);
    expect(rows).toEqual([
      { details: { epoch: 7, first_lost_seq: 4, last_lost_seq: 5 } },
      { details: { epoch: 8, first_lost_seq: null, last_lost_seq: null } },
    ]);
  });

  test('is none where the conversation itself is lost', async () => {
    expect(await tell(7, 3, (group.id + 1_000) as typeof group.id)).toBe(false);
  });
});

describe('what commits', () => {
  test('is known as soon as it is answered: edits, deletions and notices', async () => {
    const { witness } = pools;
    await edit(2, 'edited');
    expect(witness.heads).toMatchObject([{ conversationId: group.id, rev: 4 }]);
    const rev = await notice();
    expect(witness.heads).toMatchObject([{ rev }]);
    await expect(
      pools.general.transaction(async (tx) => {
        await insertNotice(tx, { conversationId: group.id, kind: 'renamed', details: {} });
        throw new Error('rolled back');
      }),
    ).rejects.toThrow('rolled back');
    expect(witness.heads).toMatchObject([{ rev }]);
  });
});
