import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ConversationId, HookId, Rev, Seq } from '../../../src/model/ids.ts';
import type { Sql } from '../../../src/storage/db/connection.ts';
import { PARTITIONS } from '../../../src/storage/hooks/lanes.ts';
import { claimPartitions } from '../../../src/storage/hooks/leases.ts';
import type { Pool } from '../../../src/storage/db/pool.ts';
import { markHookRemovedByClient } from '../../../src/storage/hooks/hooks.ts';
import { parkHook, markHookRemovedByTarget, StaleLaneError } from '../../../src/storage/hooks/hook-removal.ts';
import type { AttemptRecord, RetryRangeUpdate, Settlement } from '../../../src/storage/hooks/settlement.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { isWaiting, makeGroups, makeHook, settle, type StoredGroup, until, UNTROUBLED } from '../fixture.ts';

let database: TestDatabase;
let pool: Pool;
let leasePool: Pool;
let group: StoredGroup;
let hook: HookId;

beforeEach(async () => {
  database = await createTestDatabase();
  ({ intake: pool, lease: leasePool } = database.open());
  await pool.run((sql) => claimPartitions(sql, { holder: 'us', leaseMs: 10_000 }));
  group = (await makeGroups(database, 1))[0]!;
  hook = await makeHook(database, group);
});
afterEach(() => database.drop());

function attempt(changes: Partial<AttemptRecord> = {}): AttemptRecord {
  const first = {
    firstSeq: 1 as Seq,
    lastSeq: 1 as Seq,
    rev: 0,
    lastRev: null,
    attempt: 1,
    at: new Date('2026-11-21T10:00:00.123Z'),
  } as const;
  return { ...first, outcome: 'delivered', category: null, code: 200, durationMs: 12, ...changes };
}

function settlement(changes: Partial<Settlement> = {}): Settlement {
  const fences = { hookId: hook, generation: 0, epoch: 1 };
  return { ...fences, ...UNTROUBLED, cursor: 1 as Seq, attempts: [attempt()], ...changes };
}

const settleOne = async (changes: Partial<Settlement> = {}): Promise<boolean> =>
  (await pool.run((sql) => settle(sql, [settlement(changes)]))).has(changes.hookId ?? hook);

async function row(id = hook): Promise<Record<string, unknown>> {
  const [found] = await database.query(
    (sql) => sql`
    select cursor, failures, failing_since, next_attempt_at, generation, last_success_at, last_error_at,
      last_error_category, last_error_code, removed_by from reverse_hook where id = ${id}`,
  );
  return { ...found };
}

const logged = async (): Promise<Record<string, unknown>[]> => [
  ...(await database.query(
    (sql) => sql`select hook_id, seq, attempt, outcome, category, code from delivery_attempt order by seq`,
  )),
];

describe('settle()', () => {
  test('writes the cursor, the health and the log of a delivery', async () => {
    expect(await settleOne()).toBe(true);
    expect(await row()).toMatchObject({ cursor: 1, failures: 0, last_success_at: attempt().at, last_error_at: null });
    expect(await logged()).toEqual([
      { hook_id: hook, seq: 1, attempt: 1, outcome: 'delivered', category: null, code: 200 },
    ]);
  });

  test('writes a failure with its error, and keeps both when a success follows', async () => {
    const at = attempt().at;
    const failed = attempt({ outcome: 'failed', category: 'status', code: 500 });
    const next = new Date(at.getTime() + 5_000);
    await settleOne({ cursor: 0 as Seq, failures: 1, failingSince: at, nextAttemptAt: next, attempts: [failed] });
    const error = { last_error_at: at, last_error_category: 'status', last_error_code: 500 };
    expect(await row()).toMatchObject({ ...error, cursor: 0, failures: 1, failing_since: at, next_attempt_at: next });
    await settleOne({ attempts: [attempt({ attempt: 2, at: next })] });
    expect(await row()).toMatchObject({ ...error, cursor: 1, failures: 0, failing_since: null, next_attempt_at: null });
    expect(await logged()).toHaveLength(2);
  });

  test('of several attempts takes the newest success and the newest error, and logs each', async () => {
    const at = (ms: number): Date => new Date(Date.UTC(2026, 10, 21) + ms);
    const seq = (n: number): Pick<AttemptRecord, 'firstSeq' | 'lastSeq'> => ({ firstSeq: n as Seq, lastSeq: n as Seq });
    const delivered = [1, 2, 3].map((n) => attempt({ ...seq(n), at: at(n) }));
    await settleOne({ cursor: 3 as Seq, attempts: delivered });
    expect(await row()).toMatchObject({ cursor: 3, last_success_at: at(3), last_error_at: null });
    const failed = attempt({ ...seq(5), at: at(5), outcome: 'failed', category: 'timeout', code: null });
    const state = { cursor: 4 as Seq, failures: 1, failingSince: at(5), nextAttemptAt: at(9) };
    await settleOne({ ...state, attempts: [attempt({ ...seq(4), at: at(4) }), failed] });
    expect(await row()).toMatchObject({ cursor: 4, failures: 1, last_success_at: at(4), last_error_at: at(5) });
    expect((await logged()).map(({ seq, outcome }) => `${String(seq)} ${String(outcome)}`)).toEqual([
      '1 delivered',
      '2 delivered',
      '3 delivered',
      '4 delivered',
      '5 failed',
    ]);
  });

  test('without an attempt moves the cursor and logs nothing', async () => {
    expect(await settleOne({ cursor: 9 as Seq, attempts: [] })).toBe(true);
    expect(await row()).toMatchObject({ cursor: 9, last_success_at: null, last_error_at: null });
    expect(await logged()).toEqual([]);
  });

  test('is refused for a newer generation, of which the row knows nothing', async () => {
    await database.query((sql) => sql`update reverse_hook set generation = 5`);
    expect(await settleOne({ generation: 6 })).toBe(false);
    expect(await row()).toMatchObject({ cursor: 0 });
    expect(await settleOne({ generation: 5 })).toBe(true);
  });

  test.each(['delivered', 'failed'] as const)(
    'of an older generation counts for what was delivered and changes nothing else (the last one %s)',
    async (last) => {
      const since = new Date('2026-11-20T00:00:00Z');
      await database.query(
        (sql) =>
          sql`update reverse_hook set generation = 5, failures = 7, failing_since = ${since}, parked_at = ${since}`,
      );
      const seq = (n: number): Partial<AttemptRecord> => ({ firstSeq: n as Seq, lastSeq: n as Seq });
      const attempts = [attempt(seq(1)), attempt({ ...seq(2), outcome: last })];
      const cursor = (last === 'delivered' ? 2 : 1) as Seq;
      const health = last === 'delivered' ? {} : { failures: 1, failingSince: new Date(), nextAttemptAt: new Date() };
      expect(await settleOne({ generation: 4, cursor, attempts, ...health })).toBe(false);
      expect(await row()).toMatchObject({ cursor, failures: 7, failing_since: since, next_attempt_at: null });
      expect(await logged()).toHaveLength(2);
    },
  );

  test('of before the cursor was moved by hand counts for nothing, whatever became of it', async () => {
    await database.query((sql) => sql`update reverse_hook set generation = 5, cursor_generation = 5`);
    const failed = { failures: 1, attempts: [attempt({ outcome: 'failed' })] };
    const retries = [
      { seq: 1 as Seq, lastSeq: 1 as Seq, rev: 0 as const, lastRev: 0 as const, attempts: 1, nextAt: new Date() },
    ];
    for (const changes of [{}, { ...failed, retries }])
      expect(await settleOne({ generation: 4, ...changes })).toBe(false);
    expect(await row()).toMatchObject({ cursor: 0, failures: 0, last_success_at: null });
    expect(await database.query((sql) => sql`select from delivery_retry`)).toHaveLength(0);
  });

  test('remembers what is repeated apart, and forgets it when it is over', async () => {
    const nextAt = new Date('2026-11-21T11:00:00Z');
    const retry = (seq: number, changes: Partial<RetryRangeUpdate> = {}): RetryRangeUpdate => ({
      seq: seq as Seq,
      lastSeq: seq as Seq,
      rev: 0,
      lastRev: 0,
      attempts: 1,
      nextAt,
      ...changes,
    });
    const rows = async (): Promise<unknown[]> => [
      ...(await database.query((sql) => sql`select seq, last_seq, attempts, next_at from delivery_retry order by seq`)),
    ];
    await settleOne({ retries: [retry(1), retry(5, { lastSeq: 9 as Seq })] });
    expect(await rows()).toEqual([
      { seq: 1, last_seq: 1, attempts: 1, next_at: nextAt },
      { seq: 5, last_seq: 9, attempts: 1, next_at: nextAt },
    ]);
    // The settler repeats a settlement with an unknown outcome.
    for (let n = 0; n < 2; n += 1)
      await settleOne({ retries: [retry(1, { nextAt: null }), retry(5, { attempts: 2 })] });
    // A result for message 5 alone leaves messages 6 to 9 in the row.
    expect(await rows()).toEqual([{ seq: 5, last_seq: 9, attempts: 2, next_at: nextAt }]);
    await settleOne({ retries: [retry(5, { nextAt: null })] });
    expect(await rows()).toHaveLength(1);
    // With 0 attempts, the messages of the batch are sent one by one from now on.
    await settleOne({ retries: [retry(5, { attempts: 0 })] });
    expect(await rows()).toEqual([{ seq: 5, last_seq: 5, attempts: 0, next_at: nextAt }]);
  });

  test('remembers the batch that failed, the messages that go one by one, and the rejections', async () => {
    const marks = { rejections: 3, batchLastSeq: 7 as Seq, unbatchedUntil: 9 as Seq };
    await settleOne({ failures: 1, ...marks, attempts: [] });
    const read = (): Promise<unknown> =>
      database.query(async (sql) => [
        ...(await sql`select rejections, batch_last_seq, unbatched_until from reverse_hook`),
      ]);
    expect(await read()).toEqual([{ rejections: 3, batch_last_seq: 7, unbatched_until: 9 }]);
    await settleOne();
    expect(await read()).toEqual([{ rejections: 0, batch_last_seq: null, unbatched_until: null }]);
  });

  test('moves the place among the events of a hook that asks for them, with what is repeated of them', async () => {
    const asking = await makeHook(database, group, { events: ['message.updated'], startAfterRev: 5 as Rev });
    const read = async (): Promise<unknown> => {
      const [found] = await database.query(
        (sql) => sql`
          select cursor, event_cursor, batch_last_rev, unbatched_until_rev from reverse_hook where id = ${asking}`,
      );
      return { ...found };
    };
    const repeated = (rev: number, attempts = 1): RetryRangeUpdate[] => [
      { seq: 0, lastSeq: 0, rev: rev as Rev, lastRev: rev as Rev, attempts, nextAt: new Date() },
    ];
    const logged = attempt({ rev: 7 as Rev, lastRev: 8 as Rev });
    const marks = { batchLastRev: 12 as Rev, unbatchedUntilRev: 14 as Rev };
    const first = { hookId: asking, cursor: 0 as Seq, eventCursor: 8 as Rev, attempts: [logged], ...marks };
    // The settler repeats a settlement with an unknown outcome. The other hook asks for no events.
    for (let n = 0; n < 2; n += 1) {
      const both = [settlement({ ...first, retries: repeated(7) }), settlement()];
      expect((await pool.run((sql) => settle(sql, both))).size).toBe(2);
    }
    expect(await read()).toEqual({ cursor: 0, event_cursor: 8, batch_last_rev: 12, unbatched_until_rev: 14 });
    const rows = () =>
      database.query(async (sql) => [...(await sql`select seq, rev, last_rev from delivery_retry order by rev`)]);
    expect(await rows()).toEqual([{ seq: 0, rev: 7, last_rev: 7 }]);
    const log = await database.query(
      (sql) => sql`select seq, rev, last_rev from delivery_attempt order by hook_id, rev`,
    );
    expect([...log]).toEqual([
      { seq: 1, rev: 0, last_rev: null },
      { seq: 1, rev: 7, last_rev: 8 },
    ]);
    await settleOne({
      ...first,
      eventCursor: 6 as Rev,
      attempts: [],
      retries: repeated(7).map((each) => ({ ...each, nextAt: null })),
    });
    expect(await read()).toMatchObject({ event_cursor: 8 });
    expect(await rows()).toEqual([]);
    // The hook no longer asks for events: a request in flight moves no cursor and leaves no retry row.
    await database.query(
      (sql) => sql`
        update reverse_hook set events = '{}', event_cursor = null, event_start_rev = null, batch_last_rev = null,
          unbatched_until_rev = null, generation = 1
        where id = ${asking}`,
    );
    expect(await settleOne({ ...first, cursor: 3 as Seq, retries: repeated(9) })).toBe(false);
    expect(await read()).toEqual({ cursor: 3, event_cursor: null, batch_last_rev: null, unbatched_until_rev: null });
    expect(await rows()).toEqual([]);
  });

  test('is refused for the epoch of a lease that has changed hands', async () => {
    await pool.run((sql) => claimPartitions(sql, { holder: 'us', leaseMs: 10_000 }));
    expect(await settleOne({ epoch: 1 })).toBe(false);
    expect(await row()).toMatchObject({ cursor: 0 });
    expect(await settleOne({ epoch: 2 })).toBe(true);
  });

  test('never puts the cursor back', async () => {
    await settleOne({ cursor: 7 as Seq });
    expect(await settleOne({ cursor: 3 as Seq })).toBe(true);
    expect(await row()).toMatchObject({ cursor: 7 });
  });

  test('that is repeated logs its attempt once', async () => {
    for (let i = 0; i < 3; i += 1) expect(await settleOne()).toBe(true);
    await Promise.all([settleOne(), settleOne()]);
    expect(await logged()).toHaveLength(1);
  });

  test('does not touch a removed hook', async () => {
    await pool.run((sql) => markHookRemovedByClient(sql, group.id, hook));
    const before = await row();
    for (const generation of [0, 1]) expect(await settleOne({ generation, cursor: 5 as Seq })).toBe(false);
    expect(await row()).toEqual(before);
  });

  test('takes 500 lanes in one flush, and tells which of them were stale', async () => {
    const ids = [hook];
    for (let i = 1; i < 5; i += 1) ids.push(await makeHook(database, group));
    await database.query(
      (sql) => sql`
      insert into reverse_hook (conversation_id, url, secret_sealed, start_seq, cursor)
      select ${group.id}, 'http://many/' || n, '-', 0, 0 from generate_series(1, 495) n`,
    );
    const all = (await database.query((sql) => sql<{ id: HookId }[]>`select id from reverse_hook order by id`)).map(
      ({ id }) => id,
    );
    expect(all).toHaveLength(500);
    const stale = new Set([all[0], all[250], all[499]]);
    const settlements = all.map((hookId) =>
      settlement({ hookId, generation: stale.has(hookId) ? 9 : 0, cursor: (hookId + 10) as Seq }),
    );
    const taken = await pool.run((sql) => settle(sql, settlements));
    expect(taken).toEqual(new Set(all.filter((id) => !stale.has(id))));
    const rows = await database.query(
      (sql) => sql`
      select count(*) filter (where cursor = id + 10) as settled, count(*) filter (where cursor = 0) as left from reverse_hook`,
    );
    expect(rows[0]).toEqual({ settled: 497, left: 3 });
    expect(await logged()).toHaveLength(500);
  });

  test('of nothing takes nothing', async () => {
    expect(await pool.run((sql) => settle(sql, []))).toEqual(new Set());
  });

  test('waits for a claim of its partition that is under way, and is then refused', async () => {
    const claimed = Promise.withResolvers<void>();
    const commit = Promise.withResolvers<void>();
    const claiming = leasePool.transaction(async (tx) => {
      await claimPartitions(tx as unknown as Sql, { holder: 'us', leaseMs: 10_000 });
      claimed.resolve();
      await commit.promise;
    });
    await claimed.promise;
    const settling = settleOne();
    await until(database, (sql) => isWaiting(sql, 'intake'));
    commit.resolve();
    await claiming;
    expect(await settling).toBe(false);
    expect(await row()).toMatchObject({ cursor: 0 });
  });
});

describe('removeByTarget()', () => {
  const gone = attempt({ outcome: 'failed', category: 'status', code: 410 });
  const remove = (changes: Partial<Settlement> = {}, conversationId: ConversationId = group.id): Promise<void> =>
    pool.transaction((tx) =>
      markHookRemovedByTarget(tx, { settlement: settlement(changes), conversationId, host: 'example.org' }, gone),
    );
  const notices = (): Promise<unknown[]> =>
    database.query(async (sql) => [...(await sql`select conversation_id, rev, kind, details from notice`)]);
  const rev = async (): Promise<unknown> =>
    (
      await database.query(
        (sql) => sql`select last_seq, last_rev from conversation_head where conversation_id = ${group.id}`,
      )
    )[0];

  test('removes the hook, logs the attempt, and leaves a notice with the next rev and no seq', async () => {
    await remove();
    expect(await row()).toMatchObject({ removed_by: 'target', generation: 1, last_error_code: 410, cursor: 0 });
    expect(await logged()).toMatchObject([{ hook_id: hook, outcome: 'unregistered', code: 410 }]);
    expect(await notices()).toEqual([
      { conversation_id: group.id, rev: 1, kind: 'hook_removed', details: { hook, host: 'example.org' } },
    ]);
    expect(await rev()).toEqual({ last_seq: 0, last_rev: 1 });
  });

  test('does nothing when the lease has changed hands', async () => {
    await expect(remove({ epoch: 0 })).rejects.toThrow(StaleLaneError);
    expect(await row()).toMatchObject({ removed_by: null, generation: 0 });
    expect(await rev()).toEqual({ last_seq: 0, last_rev: 0 });
  });

  test('is rolled back when the hook was changed or removed meanwhile', async () => {
    await expect(remove({ generation: 1 })).rejects.toThrow(StaleLaneError);
    await remove();
    await expect(remove({ generation: 1 })).rejects.toThrow(StaleLaneError);
    expect(await notices()).toHaveLength(1);
    expect(await logged()).toHaveLength(1);
    expect(await rev()).toEqual({ last_seq: 0, last_rev: 1 });
  });

  test('belongs to the partition of its hook', async () => {
    await database.query((sql) => sql`update lease set epoch = 9 where partition <> ${hook % PARTITIONS}`);
    await remove();
    expect(await row()).toMatchObject({ removed_by: 'target' });
  });
});

describe('parkHook()', () => {
  const park = (changes: Partial<Settlement> = {}): Promise<void> =>
    pool.transaction((tx) =>
      parkHook(tx, { settlement: settlement(changes), conversationId: group.id, host: 'example.org' }),
    );
  const notices = (): Promise<unknown[]> =>
    database.query(async (sql) => [
      ...(await sql`select conversation_id, rev, kind, details from notice order by rev`),
    ]);
  const fail = (): Promise<boolean> => settleOne({ failures: 9, attempts: [attempt({ outcome: 'failed' })] });
  const notice = { conversation_id: 0, rev: 1, kind: 'hook_parked', details: {} };
  beforeEach(() => {
    Object.assign(notice, { conversation_id: group.id, details: { hook, host: 'example.org' } });
  });

  test('leaves one notice, and another one only after a success', async () => {
    await fail();
    await park();
    await expect(park()).rejects.toThrow(StaleLaneError);
    expect(await notices()).toEqual([notice]);
    await settleOne();
    await fail();
    await park();
    expect(await notices()).toEqual([notice, { ...notice, rev: 2 }]);
  });

  test('says nothing of a hook that does not fail any more, was changed, or belongs to somebody else', async () => {
    await expect(park()).rejects.toThrow(StaleLaneError);
    await fail();
    await expect(park({ generation: 1 })).rejects.toThrow(StaleLaneError);
    await expect(park({ epoch: 0 })).rejects.toThrow(StaleLaneError);
    expect(await notices()).toEqual([]);
  });
});
