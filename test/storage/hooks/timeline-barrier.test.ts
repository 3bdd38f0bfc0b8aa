import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Pool } from '../../../src/storage/db/pool.ts';
import {
  decideTimeline,
  crashedInOtherTimeline,
  raiseForLateFinding,
  readBarrier,
  reportFinding,
  type TimelineFinding,
} from '../../../src/storage/hooks/timeline-barrier.ts';
import { readLogEpoch } from '../../../src/storage/messages/log-epoch.ts';
import type { LogEpoch } from '../../../src/model/ids.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { makeGroups, makeHook, type StoredGroup } from '../fixture.ts';

let database: TestDatabase;
let pool: Pool;

beforeEach(async () => {
  database = await createTestDatabase();
  pool = database.open().general;
});
afterEach(() => database.drop());

const report = (node: string, timeline: number, finding: TimelineFinding): Promise<void> =>
  pool.run((sql) => reportFinding(sql, { node, timeline, finding }));
const decide = async (timeline: number, mayWait = true): Promise<boolean | null> => {
  const options = { timeline, mayWait, epochFloor: 0 };
  return (await pool.transaction((tx) => decideTimeline(tx, options)))?.epochRaised ?? null;
};
const epoch = (): Promise<number> => pool.run(readLogEpoch);

describe('a new timeline', () => {
  test('that every node confirms raises nothing, and is decided for all', async () => {
    await report('a', 1, 'complete');
    await report('b', 1, 'complete');
    await report('a', 2, 'complete');
    expect(await pool.run((sql) => readBarrier(sql, 2))).toEqual({
      epochRaised: null,
      hasNonCompleteFinding: false,
      silentNodes: ['b'],
    });
    expect(await decide(2)).toBeNull();
    await report('b', 2, 'complete');
    expect(await decide(2)).toBe(false);
    expect(await epoch()).toBe(0);
    // The decision stands for a later node that cannot confirm that the database has everything.
    await report('c', 2, 'unknown');
    expect(await decide(2)).toBe(false);
  });

  test.each<TimelineFinding>(['missing', 'unknown'])(
    'in which a node reports %s raises the epoch once all have compared',
    async (finding) => {
      await report('a', 1, 'complete');
      await report('b', 2, finding);
      expect(await decide(2)).toBeNull();
      await report('a', 2, 'complete');
      expect(await decide(2)).toBe(true);
      expect(await epoch()).toBeGreaterThan(1_000_000);
    },
  );

  test('in which a node says nothing raises the epoch when time is up', async () => {
    await report('a', 1, 'complete');
    await report('b', 2, 'complete');
    expect(await decide(2)).toBeNull();
    expect(await decide(2, false)).toBe(true);
  });

  test('is decided once, however many nodes do at once, and the next one anew', async () => {
    await report('a', 2, 'missing');
    expect(await Promise.all(Array.from({ length: 6 }, () => decide(2, false)))).toEqual(Array(6).fill(true));
    const raised = await epoch();
    expect(await decide(2, false)).toBe(true);
    expect(await epoch()).toBe(raised);
    expect(await pool.run((sql) => crashedInOtherTimeline(sql, 'a', 2))).toBe(false);
    expect(await pool.run((sql) => crashedInOtherTimeline(sql, 'a', 3))).toBe(true);
    await report('a', 3, 'missing');
    expect(await decide(3)).toBe(true);
    expect(await epoch()).toBeGreaterThan(raised);
  });
});

describe('a loss that is found late', () => {
  const late = (knownEpoch: number, ...groups: StoredGroup[]): Promise<boolean> => {
    const lost = groups.map(({ id }) => ({ conversationId: id, knownSeq: 5, knownRev: 5, lastSeq: 4, lastRev: 4 }));
    const loss = { timeline: 2, knownEpoch: knownEpoch as LogEpoch, lost };
    return pool.transaction((tx) => raiseForLateFinding(tx, loss));
  };

  test('raises the epoch once, for all nodes that find the same', async () => {
    const [group] = (await makeGroups(database, 1)) as [StoredGroup];
    await report('a', 2, 'complete');
    expect(await decide(2)).toBe(false);
    expect((await Promise.all([late(0, group), late(0, group), late(0, group)])).filter(Boolean)).toHaveLength(1);
    const raised = await epoch();
    expect(await late(raised, group)).toBe(true);
    expect(await epoch()).toBeGreaterThan(raised);
  });

  test('raises it again for conversations of which the former raise did not know', async () => {
    const [one, other] = (await makeGroups(database, 2)) as [StoredGroup, StoredGroup];
    await database.query((sql) => sql`update conversation_head set last_seq = 4, last_rev = 4`);
    expect(await late(0, one)).toBe(true);
    expect(await late(0, one)).toBe(false);
    expect(await late(0, one, other)).toBe(true);
    const heads = await database.query(
      (sql) => sql`select epoch, epoch_rev as rev from conversation_head order by conversation_id`,
    );
    const raised = { epoch: await epoch(), rev: 0 };
    expect(heads).toEqual([raised, raised]);
  });

  test('raises nothing where the timeline began with a raise', async () => {
    const [group] = (await makeGroups(database, 1)) as [StoredGroup];
    await report('a', 2, 'missing');
    expect(await decide(2)).toBe(true);
    expect(await late(0, group)).toBe(false);
  });

  test('raises above the epoch that was known, which may be lost too', async () => {
    expect(await late(2_000_000_000)).toBe(true);
    expect(await epoch()).toBeGreaterThan(2_000_000_000);
  });
});

describe('a raise', () => {
  let group: StoredGroup;
  let hook: number;

  beforeEach(async () => {
    [group] = (await makeGroups(database, 1)) as [StoredGroup];
    hook = await makeHook(database, group, { url: 'http://a.example/' });
    await database.query(async (sql) => {
      await sql`update conversation_head set last_seq = 40, last_rev = 40`;
      await sql`
        update reverse_hook set cursor = 42, batch_last_seq = 43, generation = 5,
          events = '{message.updated}', event_start_rev = 1, event_cursor = 41, batch_last_rev = 44`;
      await sql`
        insert into delivery_retry (conversation_id, hook_id, seq, last_seq, rev, last_rev, attempts, next_at)
        values (${group.id}, ${hook}, 38, 38, 0, 0, 1, now()), (${group.id}, ${hook}, 39, 41, 0, 0, 1, now()),
          (${group.id}, ${hook}, 41, 42, 0, 0, 1, now()), (${group.id}, ${hook}, 0, 0, 40, 41, 1, now()),
          (${group.id}, ${hook}, 0, 0, 41, 41, 1, now())`;
      await sql`update lease set epoch = 7, timeline = 1`;
    });
  });

  test('takes cursors back that are ahead of the log, and lets no settlement bring them again', async () => {
    await report('a', 2, 'missing');
    expect(await decide(2)).toBe(true);
    const [row] = await database.query(
      (sql) => sql`
        select cursor, batch_last_seq as batch, event_cursor as "eventCursor", batch_last_rev as "eventBatch",
          generation, cursor_generation as moved from reverse_hook`,
    );
    expect(row).toEqual({ cursor: 40, batch: null, eventCursor: 40, eventBatch: null, generation: 6, moved: 6 });
    const retries = await database.query(
      (sql) => sql`select seq, last_seq as "lastSeq", rev, last_rev as "lastRev" from delivery_retry order by rev, seq`,
    );
    expect(retries).toEqual([
      { seq: 38, lastSeq: 38, rev: 0, lastRev: 0 },
      { seq: 39, lastSeq: 40, rev: 0, lastRev: 0 },
      { seq: 0, lastSeq: 0, rev: 40, lastRev: 40 },
    ]);
    const [lease] = await database.query(
      (sql) => sql`select min(epoch) as epoch, max(timeline) as timeline from lease`,
    );
    expect(lease).toEqual({ epoch: 1_007, timeline: 2 });
  });

  test('that did not happen changes neither', async () => {
    await report('a', 2, 'complete');
    expect(await decide(2)).toBe(false);
    const [row] = await database.query((sql) => sql`select cursor, generation from reverse_hook`);
    expect(row).toEqual({ cursor: 42, generation: 5 });
    const [lease] = await database.query((sql) => sql`select max(epoch) as epoch from lease`);
    expect(lease).toEqual({ epoch: 7 });
  });
});
