import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ConversationId, HookId, Rev, Seq } from '../../../src/model/ids.ts';
import { readDeliveryEvents } from '../../../src/storage/hooks/hook-events.ts';
import {
  conversationsWithPendingEvents,
  lanesOfConversations,
  PARTITIONS,
  conversationsWithPendingMessages,
  readDeliveryMessages,
  type SweepPageRequest,
} from '../../../src/storage/hooks/lanes.ts';
import { MessageLog } from '../../../src/storage/messages/message-log.ts';
import type { Pool } from '../../../src/storage/db/pool.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { logOptions, makeGroups, makeHook, post, type StoredGroup } from '../fixture.ts';

let database: TestDatabase;
let pool: Pool;
let groups: StoredGroup[];

/** The hooks of groups 0 to 8; group 9 has none. Each group has ten messages of ten bytes. */
const hooks: HookId[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  const opened = database.open();
  pool = opened.general;
  groups = await makeGroups(database, 10);
  for (const group of groups.slice(0, 9)) hooks.push(await makeHook(database, group));
  const log = new MessageLog(opened.intake, logOptions());
  const texts = Array.from({ length: 10 }, (_, i) => `message ${i + 1}`.padEnd(10, '.').slice(0, 10));
  await Promise.all(groups.flatMap((group) => texts.map((text) => log.append(post(group, text, { hops: 1 })))));
  await log.stop();
});
afterAll(() => database.drop());

describe('readMessages()', () => {
  const read = (positions: readonly (readonly [StoredGroup, number])[], limit = 100, bytes = 1_000_000) =>
    pool.run((sql) =>
      readDeliveryMessages(
        sql,
        positions.map(([group, after]) => ({ conversationId: group.id, after: after as Seq, limit })),
        bytes,
      ),
    );
  const seqs = (messages: readonly { seq: Seq }[]): number[] => messages.map(({ seq }) => seq);

  test('answers each position in its place, in order, and the same conversation at several', async () => {
    const answers = await read([
      [groups[3]!, 7],
      [groups[0]!, 0],
      [groups[3]!, 10],
      [groups[3]!, 8],
    ]);
    expect(answers.map(seqs)).toEqual([[8, 9, 10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [], [9, 10]]);
  });

  test('reads no more than the limit for each position', async () => {
    const answers = await read(
      [
        [groups[0]!, 0],
        [groups[1]!, 4],
      ],
      3,
    );
    expect(answers.map(seqs)).toEqual([
      [1, 2, 3],
      [5, 6, 7],
    ]);
  });

  test.each([
    [1, 1],
    [10, 1],
    [11, 2],
    [25, 3],
  ])('for %d bytes of text reads until they are reached: %d messages, one at least', async (bytes, count) => {
    expect(seqs((await read([[groups[0]!, 0]], 100, bytes))[0]!)).toHaveLength(count);
  });

  test('gives what a delivery carries, and a deleted message without its text', async () => {
    const group = groups[8]!;
    await database.query(
      (sql) => sql`update message set deleted_at = now() where conversation_id = ${group.id} and seq = 2`,
    );
    const [messages] = await read([[group, 0]], 2);
    expect(messages).toEqual([
      {
        seq: 1,
        logEpoch: 0,
        rev: 1,
        revLogEpoch: 0,
        text: 'message 1.',
        hops: 1,
        sentAt: expect.any(Date),
        deliveredAsDeleted: false,
        attachments: null,
        cards: null,
        title: 'Group 8',
        senderId: group.accountId,
        senderName: 'Sender 8',
        senderNick: null,
        senderKind: 'webhook',
        label: null,
        iconUrl: null,
      },
      expect.objectContaining({ seq: 2, text: '', deliveredAsDeleted: true }),
    ]);
  });

  test('gives cards, and counts their bytes with those of the text', async () => {
    const group = groups[9]!;
    const cards = [{ title: 'x'.repeat(100) }];
    await database.query(
      (sql) => sql`update message set cards = ${sql.json(cards)} where conversation_id = ${group.id} and seq = 2`,
    );
    const [messages] = await read([[group, 0]]);
    expect(messages!.slice(0, 2).map((each) => each.cards)).toEqual([null, cards]);
    expect(seqs((await read([[group, 0]], 100, 100))[0]!)).toEqual([1, 2]);
  });

  test('finds nothing in a conversation that is not there', async () => {
    expect(await read([[{ ...groups[0]!, id: 999 as ConversationId }, 0]])).toEqual([[]]);
    expect(await read([])).toEqual([]);
  });
});

describe('lanesOfConversations()', () => {
  test('gives every hook that is not removed, with the newest seq', async () => {
    const rows = await pool.run((sql) =>
      lanesOfConversations(sql, [groups[0]!.id, groups[9]!.id, 999 as ConversationId]),
    );
    expect(rows).toEqual([
      {
        id: hooks[0],
        conversationId: groups[0]!.id,
        url: expect.stringMatching(/^http:/),
        format: 'klatch',
        order: 'strict',
        batch: 1,
        signature: 'v1',
        skip: [],
        triggers: [],
        maxAgeS: null,
        secretSealed: '-',
        oldSecretSealed: null,
        oldSecretUntil: null,
        startAfterSeq: 0,
        cursor: 0,
        events: [],
        eventStartAfterRev: null,
        eventCursor: null,
        hasPendingEvents: false,
        generation: 0,
        pausedAt: null,
        failures: 0,
        failingSince: null,
        parkedAt: null,
        nextAttemptAt: null,
        rejections: 0,
        batchLastSeq: null,
        unbatchedUntil: null,
        batchLastRev: null,
        unbatchedUntilRev: null,
        retries: 0,
        earliestRetryAt: null,
        hasRemovedBacklog: false,
        lastSeq: 10,
      },
    ]);
  });
});

describe('pendingConversations()', () => {
  const everything = Array.from({ length: PARTITIONS }, (_, i) => i);
  const sweep = (page: Partial<SweepPageRequest> = {}): Promise<ConversationId[]> =>
    pool.run((sql) =>
      conversationsWithPendingMessages(sql, {
        partitions: everything,
        after: 0,
        limit: 100,
        onlyRecent: false,
        ...page,
      }),
    );
  const ids = (...indices: number[]): ConversationId[] => indices.map((index) => groups[index]!.id);
  const change = (statement: string): Promise<unknown> => database.query((sql) => sql.unsafe(statement));

  test('pages through the conversations with something pending, each once, in id order', async () => {
    await makeHook(database, groups[2]!);
    expect(await sweep()).toEqual(ids(0, 1, 2, 3, 4, 5, 6, 7, 8));
    expect(await sweep({ limit: 4 })).toEqual(ids(0, 1, 2, 3));
    expect(await sweep({ limit: 4, after: groups[3]!.id })).toEqual(ids(4, 5, 6, 7));
    expect(await sweep({ after: groups[8]!.id })).toEqual([]);
  });

  test('looks at the asked partitions only', async () => {
    expect(await sweep({ partitions: [hooks[4]! % PARTITIONS, hooks[6]! % PARTITIONS] })).toEqual(ids(4, 6));
    expect(await sweep({ partitions: [] })).toEqual([]);
  });

  test('leaves out what is delivered, what is removed, and, for a recent sweep, what is old', async () => {
    await change(`update reverse_hook set cursor = 10 where id = ${hooks[0]}`);
    await change(`update reverse_hook set removed_at = now(), removed_by = 'client' where id = ${hooks[1]}`);
    await change(
      `update conversation_head set last_at = now() - interval '2 minutes' where conversation_id = ${groups[4]!.id}`,
    );
    expect(await sweep()).toEqual(ids(2, 3, 4, 5, 6, 7, 8));
    expect(await sweep({ onlyRecent: true })).toEqual(ids(2, 3, 5, 6, 7, 8));
    const rows = await pool.run((sql) => lanesOfConversations(sql, ids(1)));
    expect([...rows]).toEqual([]);
  });
});

describe('events of hooks that ask for them', () => {
  const everything = Array.from({ length: PARTITIONS }, (_, i) => i);
  const sweep = (page: Partial<SweepPageRequest> = {}): Promise<ConversationId[]> =>
    pool.run((sql) =>
      conversationsWithPendingEvents(sql, { partitions: everything, after: 0, limit: 100, onlyRecent: false, ...page }),
    );
  const asking = new Map<number, HookId>();

  /** Inserts one edit of a message for each rev. `ago`: the age of the edits. */
  const write = async (group: StoredGroup, revs: readonly number[], ago = '1 second') => {
    await database.query(
      (sql) => sql`
        insert into hook_event (conversation_id, rev, after_seq, seq, kind, actor_id, hops, at)
        select ${group.id}, rev, 10, rev - 10, 'message.updated', ${group.accountId}, 2, clock_timestamp() - ${ago}::interval
        from unnest(${[...revs]}::bigint[]) as u(rev)`,
    );
  };

  beforeAll(async () => {
    for (const index of [3, 5, 7]) {
      const changes = { events: ['message.updated'] as const, startRev: 10 as Rev };
      asking.set(index, await makeHook(database, groups[index]!, changes));
    }
    // No hook in group 1 asks for events.
    for (const index of [1, 3, 5]) await write(groups[index]!, [11, 12], index === 5 ? '2 minutes' : '1 second');
  });

  test('are found in their conversations alone, page by page and by partition, the recent ones by themselves', async () => {
    expect(await sweep()).toEqual([groups[3]!.id, groups[5]!.id]);
    expect(await sweep({ limit: 1 })).toEqual([groups[3]!.id]);
    expect(await sweep({ limit: 1, after: groups[3]!.id })).toEqual([groups[5]!.id]);
    expect(await sweep({ partitions: [asking.get(5)! % PARTITIONS] })).toEqual([groups[5]!.id]);
    expect(await sweep({ onlyRecent: true })).toEqual([groups[3]!.id]);
    await database.query((sql) => sql`update reverse_hook set event_cursor = 12 where id = ${asking.get(3)!}`);
    expect(await sweep()).toEqual([groups[5]!.id]);
    const rows = await pool.run((sql) => lanesOfConversations(sql, [groups[3]!.id, groups[5]!.id]));
    const pending = rows.filter(({ eventCursor }) => eventCursor !== null).map((row) => [row.id, row.hasPendingEvents]);
    expect(new Map(pending as [HookId, boolean][])).toEqual(
      new Map([
        [asking.get(3)!, false],
        [asking.get(5)!, true],
      ]),
    );
  });

  test('are read behind a rev with their messages as those are, and with the head of that moment', async () => {
    await database.query(
      (sql) => sql`
        update message set text = 'now', rev = 12, edited_at = now() where conversation_id = ${groups[5]!.id} and seq = 1`,
    );
    const positions = [
      { conversationId: groups[5]!.id, afterRev: 10 as Rev },
      { conversationId: groups[7]!.id, afterRev: 0 as Rev },
      { conversationId: groups[5]!.id, afterRev: 11 as Rev },
    ];
    const read = (limit = 64, bytes = 1_000_000) =>
      pool.run((sql) => readDeliveryEvents(sql, positions, { limit, bytes }));
    const [first, none, second] = await read();
    expect(first!.events).toMatchObject([
      { rev: 11, afterSeq: 10, kind: 'message.updated', hops: 2, message: { seq: 1, rev: 12, text: 'now' } },
      { rev: 12, message: { seq: 2, editedAt: null, deliveredAsDeleted: false, label: null } },
    ]);
    expect([first, none, second].map((page) => [page!.headSeq, page!.events.length])).toEqual([
      [10, 2],
      [10, 0],
      [10, 1],
    ]);
    expect((await read(1)).map(({ events }) => events.length)).toEqual([1, 0, 1]);
    // A page always has its first event, even if that event is larger than `bytes`.
    expect((await read(64, 1)).map(({ events }) => events.length)).toEqual([1, 0, 1]);
  });
});
