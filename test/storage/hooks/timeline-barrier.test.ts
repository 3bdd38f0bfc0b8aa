import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Pool } from '../../../src/storage/db/pool.ts';
import {
  decideTimeline,
  endedInOtherTimeline,
  raiseForLateFinding,
  readBarrier,
  reportFinding,
  type TimelineFinding,
} from '../../../src/storage/hooks/timeline-barrier.ts';
import { readLogEpoch } from '../../../src/storage/messages/log-epoch.ts';
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
      isLossReported: false,
      silentNodes: ['b'],
    });
    expect(await decide(2)).toBeNull();
    await report('b', 2, 'complete');
    expect(await decide(2)).toBe(false);
    expect(await epoch()).toBe(0);
    // Who comes later, and cannot confirm, finds it decided.
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
    expect(await pool.run((sql) => endedInOtherTimeline(sql, 'a', 2))).toBe(false);
    expect(await pool.run((sql) => endedInOtherTimeline(sql, 'a', 3))).toBe(true);
    await report('a', 3, 'missing');
    expect(await decide(3)).toBe(true);
    expect(await epoch()).toBeGreaterThan(raised);
  });
});

describe('a loss that is found late', () => {
  const late = (knownEpoch: number): Promise<boolean> =>
    pool.transaction((tx) => raiseForLateFinding(tx, { timeline: 2, knownEpoch }));

  test('raises the epoch once, for all nodes that find the same', async () => {
    await report('a', 2, 'complete');
    expect(await decide(2)).toBe(false);
    expect((await Promise.all([late(0), late(0), late(0)])).filter(Boolean)).toHaveLength(1);
    const raised = await epoch();
    expect(await late(raised)).toBe(true);
    expect(await epoch()).toBeGreaterThan(raised);
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
      await sql`update reverse_hook set cursor = 42, batch_last_seq = 43, generation = 5`;
      await sql`insert into delivery_retry (hook_id, seq, last_seq, attempts, next_at)
        values (${hook}, 40, 40, 1, now()), (${hook}, 39, 41, 1, now())`;
      await sql`update lease set epoch = 7, timeline = 1`;
    });
  });

  test('takes cursors back that are ahead of the log, and lets no settlement bring them again', async () => {
    await report('a', 2, 'missing');
    expect(await decide(2)).toBe(true);
    const [row] = await database.query(
      (sql) => sql`select cursor, batch_last_seq as batch, generation, cursor_generation as moved from reverse_hook`,
    );
    expect(row).toEqual({ cursor: 40, batch: null, generation: 6, moved: 6 });
    expect(await database.query((sql) => sql`select seq from delivery_retry`)).toEqual([{ seq: 40 }]);
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
