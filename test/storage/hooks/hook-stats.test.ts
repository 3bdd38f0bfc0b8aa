import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { HookId, Rev, Seq } from '../../../src/model/ids.ts';
import type { Pool } from '../../../src/storage/db/pool.ts';
import { claimPartitions } from '../../../src/storage/hooks/leases.ts';
import type { AttemptRecord, Settlement } from '../../../src/storage/hooks/settlement.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { makeGroups, makeHook, settle, type StoredGroup, UNTROUBLED } from '../fixture.ts';

let database: TestDatabase;
let pool: Pool;
let group: StoredGroup;
let hook: HookId;

beforeEach(async () => {
  database = await createTestDatabase();
  pool = database.open().intake;
  await pool.run((sql) => claimPartitions(sql, { holder: 'us', leaseMs: 10_000 }));
  group = (await makeGroups(database, 1))[0]!;
  hook = await makeHook(database, group);
});
afterEach(() => database.drop());

const at = (text: string): Date => new Date(`2026-11-21T${text}Z`);

function attempt(time: string, changes: Partial<AttemptRecord> = {}): AttemptRecord {
  const message = { firstSeq: 1 as Seq, lastSeq: 1 as Seq, rev: 0, lastRev: null, attempt: 1 } as const;
  return { ...message, at: at(time), outcome: 'delivered', category: null, code: 200, durationMs: 12, ...changes };
}

const FAILED = { outcome: 'failed', category: 'timeout', code: null, durationMs: 15_000 } as const;

async function settleOne(changes: Partial<Settlement>): Promise<void> {
  const settlement = {
    hookId: hook,
    generation: 0,
    epoch: 1,
    ...UNTROUBLED,
    cursor: 6 as Seq,
    attempts: [],
    ...changes,
  };
  await pool.run((sql) => settle(sql, [settlement]));
}

const counted = () =>
  database.query(async (sql) => [
    ...(await sql`
      select hook_id, conversation_id, five_minutes, delivered, failed, to_json(durations) as durations
      from hook_stats order by hook_id, five_minutes`),
  ]);

const numbersOf = (hookId: HookId, time: string, rest: object): object => {
  return { hook_id: hookId, conversation_id: group.id, five_minutes: at(time), ...rest };
};

describe('the numbers of a hook', () => {
  test('counts requests, not messages, in five minutes of each, and each once', async () => {
    const other = await makeHook(database, group);
    const attempts = [
      attempt('10:00:00.000', { durationMs: 4 }),
      attempt('10:04:59.999', { firstSeq: 2 as Seq, lastSeq: 5 as Seq, durationMs: 5 }),
      attempt('10:05:00.000', { firstSeq: 6 as Seq, lastSeq: 6 as Seq, durationMs: 9_999 }),
    ];
    const failed = attempt('10:01:00', FAILED);
    const given = attempt('10:01:00.001', { outcome: 'dead_lettered', attempt: 0, durationMs: 0 });
    const failure = { hookId: other, cursor: 0 as Seq, failures: 1, failingSince: failed.at };
    // The second time is a repeat: the settler repeats a settlement whose outcome is unknown.
    for (let n = 0; n < 2; n += 1) {
      await settleOne({ attempts });
      await settleOne({ ...failure, attempts: [failed, given] });
    }
    expect(await counted()).toEqual([
      numbersOf(hook, '10:00:00', { delivered: 2, failed: 0, durations: [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] }),
      numbersOf(hook, '10:05:00', { delivered: 1, failed: 0, durations: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0] }),
      numbersOf(other, '10:00:00', { delivered: 0, failed: 1, durations: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] }),
    ]);
  });

  test('counts requests of events as those of messages, though both may have the same time and message', async () => {
    const asking = await makeHook(database, group, { events: ['message.updated'], startAfterRev: 5 as Rev });
    const attempts = [
      attempt('10:00:00'),
      attempt('10:00:00', { rev: 7 as Rev, lastRev: 7 as Rev }),
      attempt('10:00:00', { rev: 8 as Rev, lastRev: 12 as Rev, ...FAILED }),
    ];
    const failure = { failures: 1, failingSince: at('10:00:00') };
    for (let n = 0; n < 2; n += 1) await settleOne({ hookId: asking, eventCursor: 7 as Rev, ...failure, attempts });
    expect(await counted()).toEqual([
      numbersOf(asking, '10:00:00', { delivered: 2, failed: 1, durations: [0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1] }),
    ]);
  });
});
