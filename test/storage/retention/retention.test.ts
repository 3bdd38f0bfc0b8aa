import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { RetentionConfig } from '../../../src/config/config.ts';
import type { Pool } from '../../../src/storage/db/pool.ts';
import { MAX_PAGES_PER_HOOK, PAGE_ROWS } from '../../../src/storage/retention/attempt-trimming.ts';
import {
  DELETE_PAGE_ROWS,
  ensureAttemptPartitions,
  MAX_DELETE_PAGES,
  removeExpiredData,
} from '../../../src/storage/retention/retention.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { makeGroups, makeHook } from '../fixture.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.parse('2026-11-21T10:00:00Z');
const retention: RetentionConfig = {
  idempotencyKeysMs: DAY_MS,
  deliveryLogMs: 7 * DAY_MS,
  deliveryLogRowsPerHook: 10_000,
  removedHooksMs: 30 * DAY_MS,
  orphanedFilesMs: DAY_MS,
  pushLogMs: 7 * DAY_MS,
};

let database: TestDatabase;
let pool: Pool;

beforeEach(async () => {
  database = await createTestDatabase();
  pool = database.open().general;
});
afterEach(() => database.drop());

const ensure = (nowMs = NOW_MS): Promise<void> => pool.transaction((tx) => ensureAttemptPartitions(tx, nowMs));

/** The number of rows in each partition of the delivery log: one for each day, and `default`. */
async function partitions(): Promise<Record<string, number>> {
  const rows = await database.query(
    (sql) => sql<{ name: string; count: number }[]>`
    select i.inhrelid::regclass::text as name, (select count(*) from delivery_attempt a where a.tableoid = i.inhrelid) as count
    from pg_inherits i where i.inhparent = 'delivery_attempt'::regclass order by 1`,
  );
  return Object.fromEntries(rows.map(({ name, count }) => [name.replace('delivery_attempt_', ''), count]));
}

/** The number of rows of the two tables that scans have read so far. */
async function rowsRead(): Promise<{ delivery_attempt: number; idempotency_key: number }> {
  return pool.run(async (sql) => {
    await sql`select pg_stat_force_next_flush()`;
    const [row] = await sql<{ delivery_attempt: number; idempotency_key: number }[]>`
      select sum(seq_tup_read + idx_tup_fetch) filter (where relname like 'delivery_attempt%') as delivery_attempt,
        sum(seq_tup_read + idx_tup_fetch) filter (where relname = 'idempotency_key') as idempotency_key
      from pg_stat_user_tables`;
    return row!;
  });
}

const logAttempt = (at: string): Promise<unknown> =>
  database.query(
    (sql) => sql`
    insert into delivery_attempt (conversation_id, hook_id, seq, last_seq, attempt, at, outcome, duration_ms)
    values (1, 1, 1, 1, 1, ${at}::timestamptz, 'delivered', 1)`,
  );

/** Inserts counted requests for hooks 1, 2 … of conversation 7, as settlements write them. */
const countRequests = (requests: readonly number[], at = new Date(NOW_MS)): Promise<unknown> =>
  database.query(
    (sql) => sql`
    insert into hook_stats (conversation_id, hook_id, five_minutes, delivered, failed, durations)
    select 7, hook, ${at}::timestamptz, count, 0, array_fill(0, array[12])
    from unnest(${[...requests]}::int[]) with ordinality as u (count, hook)`,
  );

test('what cannot be removed holds up nothing behind it, and is said', async () => {
  const [group] = await makeGroups(database, 1);
  const hook = await makeHook(database, group!);
  await database.query(
    (sql) =>
      sql`update reverse_hook set removed_by = 'client', removed_at = now() - interval '1 year' where id = ${hook}`,
  );
  await database.query((sql) => sql`alter table idempotency_key rename to not_there`);
  await expect(removeExpiredData(pool, retention, { nowMs: Date.now() })).rejects.toThrow('idempotency_key');
  expect(await database.query((sql) => sql`select from reverse_hook where id = ${hook}`)).toEqual([]);
});

test("nothing more is removed once the round is somebody else's", async () => {
  const steps: string[] = [];
  const beforeStep = async (): Promise<void> => {
    steps.push('asked');
    throw new Error('over');
  };
  await expect(removeExpiredData(pool, retention, { nowMs: Date.now(), beforeStep })).rejects.toThrow('over');
  expect(steps).toEqual(['asked']);
});

describe('the partitions of the delivery log', () => {
  test('are made for today and three days ahead, once, however many ask', async () => {
    await Promise.all([ensure(), ensure(), ensure()]);
    await ensure();
    expect(await partitions()).toEqual({ 20261121: 0, 20261122: 0, 20261123: 0, 20261124: 0, default: 0 });
    await ensure(NOW_MS + DAY_MS);
    expect(Object.keys(await partitions())).toHaveLength(6);
  });

  test('take the attempts of their day from its first moment to its last', async () => {
    await ensure();
    for (const at of ['2026-11-22T00:00:00Z', '2026-11-22T23:59:59.999999Z', '2026-11-23T00:00:00Z'])
      await logAttempt(at);
    expect(await partitions()).toMatchObject({ 20261121: 0, 20261122: 2, 20261123: 1, default: 0 });
  });

  test('get the rows that went into the default partition before they were there', async () => {
    for (const at of ['2026-11-21T12:00:00Z', '2026-11-24T12:00:00Z', '2026-11-25T12:00:00Z']) await logAttempt(at);
    expect(await partitions()).toEqual({ default: 3 });
    await ensure();
    expect(await partitions()).toMatchObject({ 20261121: 1, 20261124: 1, default: 1 });
  });

  test('log an attempt once, also in a partition that was made later', async () => {
    await ensure();
    await logAttempt('2026-11-21T12:00:00Z');
    await expect(logAttempt('2026-11-21T12:00:00Z')).rejects.toMatchObject({ code: '23505' });
  });

  test('are dropped when the whole day is past its time', async () => {
    await ensure(NOW_MS - 9 * DAY_MS);
    await ensure();
    await logAttempt('2026-11-13T12:00:00Z');
    await logAttempt('2026-11-14T12:00:00Z');
    expect(await removeExpiredData(pool, retention, { nowMs: NOW_MS })).toMatchObject({ days: 2 });
    const left = await partitions();
    expect(Object.keys(left)).not.toContain('20261113');
    // Half of this day is within the seven days of the retention, so its partition stays.
    expect(left).toMatchObject({ 20261114: 1, default: 0 });
    expect(await removeExpiredData(pool, retention, { nowMs: NOW_MS })).toMatchObject({ days: 0 });
  });
});

describe('removeExpiredData()', () => {
  test('deletes idempotency keys past their time, more than a page of them, and no other', async () => {
    const age = (ms: number): Date => new Date(NOW_MS - ms);
    await database.query(
      (sql) => sql`
      insert into idempotency_key (conversation_id, key, seq, body_hash, created_at)
      select 1, 'old ' || n, n, '-', ${age(DAY_MS + 1_000)} from generate_series(1, 12345) n
      union all select 1, 'young ' || n, n, '-', ${age(DAY_MS - 1_000)} from generate_series(1, 10) n`,
    );
    expect(await removeExpiredData(pool, retention, { nowMs: NOW_MS })).toEqual({
      days: 0,
      attempts: 0,
      keys: 12_345,
      hooks: 0,
      pushes: 0,
      stats: 0,
    });
    const [left] = await database.query((sql) => sql`select count(*) as count, min(key) as first from idempotency_key`);
    expect(left).toEqual({ count: 10, first: 'young 1' });
  });

  test('keeps the newest rows of each hook in the delivery log, as many as it is told', async () => {
    await ensure();
    await database.query(
      (sql) => sql`
      insert into delivery_attempt (conversation_id, hook_id, seq, last_seq, attempt, at, outcome, duration_ms)
      select 7, hook, n, n, 1, ${new Date(NOW_MS)}::timestamptz + n * interval '1 second', 'delivered', 1
      from generate_series(1, 2) hook, generate_series(1, 5 * hook) n`,
    );
    await countRequests([5, 10]);
    const removed = await removeExpiredData(pool, { ...retention, deliveryLogRowsPerHook: 6 }, { nowMs: NOW_MS });
    expect(removed).toEqual({ days: 0, attempts: 4, keys: 0, hooks: 0, pushes: 0, stats: 0 });
    const left = await database.query(
      (sql) =>
        sql`select hook_id as hook, min(seq) as first, max(seq) as last from delivery_attempt group by 1 order by 1`,
    );
    expect([...left]).toEqual([
      { hook: 1, first: 1, last: 5 },
      { hook: 2, first: 5, last: 10 },
    ]);
  });

  test('trims the log of hooks with requests of the last day, any number of pages of it', async () => {
    await ensure();
    await database.query(
      (sql) => sql`
      insert into delivery_attempt (conversation_id, hook_id, seq, last_seq, attempt, at, outcome, duration_ms)
      select 7, hook, n, n, 1, ${new Date(NOW_MS)}::timestamptz + n * interval '1 ms', 'delivered', 1
      from generate_series(1, 2) hook, generate_series(1, 12345) n`,
    );
    await countRequests([12_345]);
    await countRequests([0, 12_345], new Date(NOW_MS - 2 * DAY_MS));
    expect(
      await removeExpiredData(pool, { ...retention, deliveryLogRowsPerHook: 45 }, { nowMs: NOW_MS }),
    ).toMatchObject({
      attempts: 12_300,
    });
    const left = await database.query(
      (sql) => sql`
        select hook_id as hook, count(*) as rows, min(seq) as first from delivery_attempt group by 1 order by 1`,
    );
    expect([...left]).toEqual([
      { hook: 1, rows: 45, first: 12_301 },
      { hook: 2, rows: 12_345, first: 1 },
    ]);
  });

  test('reads what it deletes, and not the rest of the log and of the keys', async () => {
    await ensure();
    const [young, old] = [new Date(NOW_MS), new Date(NOW_MS - DAY_MS - 1_000)];
    await database.query(async (sql) => {
      await sql`
        insert into delivery_attempt (conversation_id, hook_id, seq, last_seq, attempt, at, outcome, duration_ms)
        select 7, hook, n, n, 1, ${young}::timestamptz + n * interval '1 ms', 'delivered', 1
        from generate_series(1, 300) hook, generate_series(1, case when hook = 9 then 250 else 200 end) n`;
      // Old keys lie among new ones in the table, since PostgreSQL writes a new row in the place of a deleted one.
      await sql`
        insert into idempotency_key (conversation_id, key, seq, body_hash, created_at)
        select 1, 'key ' || n, n, '-', case when n % 50 = 0 then ${old}::timestamptz else ${young}::timestamptz end
        from generate_series(1, 60000) n`;
      await sql.unsafe('alter table idempotency_key set (autovacuum_enabled = false)');
      await sql`analyze`;
    });
    await countRequests(Array.from({ length: 300 }, (_, n) => (n === 8 ? 250 : 200)));
    const before = await rowsRead();
    expect(
      await removeExpiredData(pool, { ...retention, deliveryLogRowsPerHook: 200 }, { nowMs: NOW_MS }),
    ).toMatchObject({
      attempts: 50,
      keys: 1_200,
    });
    const after = await rowsRead();
    expect(after.delivery_attempt - before.delivery_attempt).toBeLessThan(1_000);
    expect(after.idempotency_key - before.idempotency_key).toBeLessThan(6_000);
  });

  test('has room in a round for more than a quarter of an hour of 2,000 keyed posts a second', () => {
    expect(MAX_DELETE_PAGES * DELETE_PAGE_ROWS).toBeGreaterThan(1.5 * 2_000 * 15 * 60);
    expect(MAX_PAGES_PER_HOOK * PAGE_ROWS).toBeGreaterThan(1.5 * 2_000 * 15 * 60);
  });

  test('deletes the numbers of requests with the log, and after a week at the earliest', async () => {
    await countRequests([1], new Date(NOW_MS - 8 * DAY_MS));
    await countRequests([1], new Date(NOW_MS - 6 * DAY_MS));
    const shortLog = { ...retention, deliveryLogMs: DAY_MS };
    const longLog = { ...retention, deliveryLogMs: 30 * DAY_MS };
    expect(await removeExpiredData(pool, longLog, { nowMs: NOW_MS })).toMatchObject({ stats: 0 });
    expect(await removeExpiredData(pool, shortLog, { nowMs: NOW_MS })).toMatchObject({ stats: 1 });
  });

  test('deletes hooks that were removed long ago, with their retries, and keeps the others', async () => {
    const [group] = await makeGroups(database, 1);
    const [old, recent, active] = [
      await makeHook(database, group!),
      await makeHook(database, group!),
      await makeHook(database, group!),
    ];
    const removed = (id: number, ms: number): Promise<unknown> =>
      database.query(
        (sql) => sql`
        update reverse_hook set removed_by = 'client', removed_at = ${new Date(NOW_MS - ms)} where id = ${id}`,
      );
    await removed(old, 30 * DAY_MS + 1_000);
    await removed(recent, 30 * DAY_MS - 1_000);
    await database.query(
      (sql) => sql`
      insert into delivery_retry (conversation_id, hook_id, seq, last_seq, attempts, next_at)
        select conversation_id, id, 1, 1, 1, now() from reverse_hook`,
    );
    expect(await removeExpiredData(pool, retention, { nowMs: NOW_MS })).toEqual({
      days: 0,
      attempts: 0,
      keys: 0,
      hooks: 1,
      pushes: 0,
      stats: 0,
    });
    const ids = await database.query(
      (sql) => sql`select r.id from reverse_hook r join delivery_retry d on d.hook_id = r.id order by r.id`,
    );
    expect(ids.map(({ id }) => id as number)).toEqual([recent, active]);
  });

  test('deletes what the log of pushes has kept for long enough', async () => {
    await database.query(
      (sql) => sql`
      with somebody as (
        insert into account (kind, nick, name) values ('user', 'alice', 'Alice') returning id
      )
      insert into push_log (account_id, at, kind, event, category)
      select id, at, 'web', 'removed', 'unregistered'
      from somebody, unnest(array[${new Date(NOW_MS - 7 * DAY_MS - 1_000).toISOString()},
        ${new Date(NOW_MS - 7 * DAY_MS + 1_000).toISOString()}]::timestamptz[]) as t(at)`,
    );
    expect(await removeExpiredData(pool, retention, { nowMs: NOW_MS })).toMatchObject({ pushes: 1 });
    const rows = await database.query((sql) => sql`select from push_log`);
    expect(rows).toHaveLength(1);
  });
});
