import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hookState, type HookState } from '../../../src/model/hook.ts';
import { readLaneReport, type LaneReport } from '../../../src/storage/hooks/lane-report.ts';
import type { Pool } from '../../../src/storage/db/pool.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const DAY_MS = 86_400_000;
const PARK_MS = 3 * DAY_MS;
const GROUPS = 6_000;
/** The limit of the report: of so many hooks it looks up the oldest message. */
const MAX_AGES = 5_000;

let database: TestDatabase;
let pool: Pool;

/**
 * Groups with three messages each, at intervals of a minute. Those of the first group are the oldest. The hooks have
 * delivered all messages.
 */
const FILL = `
  insert into conversation (kind, title) select 'group', 'group ' || n from generate_series(1, ${GROUPS}) n;
  insert into conversation_head (conversation_id, last_seq, last_rev, last_at)
    select n, 3, 3, timestamptz '2026-01-01' + n * interval '1 hour' + interval '3 minutes' from generate_series(1, ${GROUPS}) n;
  insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
    select n, m, m, 1, 'text', timestamptz '2026-01-01' + n * interval '1 hour' + m * interval '1 minute'
    from generate_series(1, ${GROUPS}) n, generate_series(1, 3) m;
  insert into reverse_hook (conversation_id, url, secret_sealed, start_seq, cursor)
    select n, 'https://user-' || n || '.example:8443/secret-path?key=1', '-', 0, 3 from generate_series(1, ${GROUPS}) n`;

beforeAll(async () => {
  database = await createTestDatabase();
  await database.query((sql) => sql.unsafe(FILL));
  await database.query((sql) => sql`analyze`);
  pool = database.open().general;
});
afterAll(() => database.drop());

const report = (nowMs = Date.now()): Promise<LaneReport> => pool.run((sql) => readLaneReport(sql, nowMs, PARK_MS));

/** Runs `look` with changed hooks, and restores the hooks. */
async function withHooks(change: string, look: () => Promise<void>): Promise<void> {
  await database.query((sql) => sql.unsafe(change));
  try {
    await look();
  } finally {
    await database.query(
      (sql) => sql`
        update reverse_hook set cursor = 3, paused_at = null, failures = 0, failing_since = null, last_error_at = null,
          removed_at = null, removed_by = null`,
    );
  }
}

describe('laneReport()', () => {
  test('of idle hooks says that all are active and nothing is pending', async () => {
    expect(await report()).toEqual({
      hooks: { active: GROUPS, failing: 0, parked: 0, paused: 0 },
      pendingHooks: 0,
      oldestPendingAt: null,
      errors: [],
    });
  });

  test('of an empty database is all zeros', async () => {
    const empty = await createTestDatabase();
    try {
      const found = await empty.open().general.run((sql) => readLaneReport(sql, Date.now(), PARK_MS));
      expect(found).toEqual({
        hooks: { active: 0, failing: 0, parked: 0, paused: 0 },
        pendingHooks: 0,
        oldestPendingAt: null,
        errors: [],
      });
    } finally {
      await empty.drop();
    }
  });

  test('counts each state as the rule of states reads the single hook, to the millisecond', async () => {
    const now = Date.parse('2026-11-21T10:00:00.500Z');
    const since = (ageMs: number): string => `timestamptz '${new Date(now - ageMs).toISOString()}'`;
    const change = `
      update reverse_hook set failures = id % 3, failing_since = case when id % 3 = 0 then null else
        case id % 4 when 0 then ${since(PARK_MS - 1)} when 1 then ${since(PARK_MS)} when 2 then ${since(PARK_MS + 1)}
        else ${since(1_000)} end end, paused_at = case when id % 5 = 0 then now() end;
      update reverse_hook set removed_at = now(), removed_by = 'client' where id % 7 = 0`;
    await withHooks(change, async () => {
      const hooks = await pool.run(
        (sql) => sql<{ pausedAt: Date | null; failures: number; failingSince: Date | null }[]>`
          select paused_at as "pausedAt", failures, failing_since as "failingSince" from reverse_hook
          where removed_at is null`,
      );
      const expected: Record<HookState, number> = { active: 0, failing: 0, parked: 0, paused: 0 };
      for (const hook of hooks) expected[hookState(hook, now, PARK_MS)] += 1;
      expect(Object.values(expected).every((count) => count > 0)).toBe(true);
      expect((await report(now)).hooks).toEqual(expected);
    });
  });

  test('counts paused hooks among those with something pending, and leaves their messages out of the oldest', async () => {
    const change = `
      update reverse_hook set cursor = 1, paused_at = now() where id = 10;
      update reverse_hook set cursor = 2 where id = 20;
      update reverse_hook set cursor = 1 where id = 30;
      update reverse_hook set cursor = 0, removed_at = now(), removed_by = 'client' where id = 5`;
    await withHooks(change, async () => {
      const { pendingHooks, oldestPendingAt } = await report();
      expect(pendingHooks).toBe(3);
      expect(oldestPendingAt).toEqual(new Date(Date.parse('2026-01-01T20:03:00Z')));
    });
  });

  test('counts what is repeated apart, also of a hook that has nothing else to do', async () => {
    const change = `
      update reverse_hook set paused_at = now() where id = 3;
      update reverse_hook set cursor = 2 where id = 9;
      insert into delivery_retry (conversation_id, hook_id, seq, last_seq, attempts, next_at)
        select r.conversation_id, r.id, d.seq, d.seq, 1, now()
        from (values (3, 1), (5, 2), (5, 3), (9, 1)) as d (hook_id, seq) join reverse_hook r on r.id = d.hook_id`;
    await withHooks(change, async () => {
      const { pendingHooks, oldestPendingAt } = await report();
      expect(pendingHooks).toBe(3);
      // The time is that of the second message of the fifth group. The message of the paused hook is older and does not
      // count.
      expect(oldestPendingAt).toEqual(new Date('2026-01-01T05:02:00Z'));
    });
    await database.query((sql) => sql`delete from delivery_retry`);
  });

  test('finds the oldest message of a failing hook behind any number of others, however busy its group is', async () => {
    const change = `
      update reverse_hook set cursor = 2 where id > ${GROUPS - MAX_AGES - 500};
      update conversation_head set last_at = now() where conversation_id = 7;
      update reverse_hook set cursor = 0, failures = 2, failing_since = timestamptz '2026-01-01 08:00' where id = 7`;
    await withHooks(change, async () => {
      const { pendingHooks, oldestPendingAt } = await report();
      expect(pendingHooks).toBe(MAX_AGES + 501);
      expect(oldestPendingAt).toEqual(new Date('2026-01-01T07:01:00Z'));
    });
  });

  test('looks messages up one by one, however many hooks have something pending', async () => {
    await withHooks('update reverse_hook set cursor = 1', async () => {
      await database.query((sql) => sql`analyze`);
      await pool.run(async (sql) => {
        const scanned = async (): Promise<unknown> => {
          await sql`select pg_stat_force_next_flush()`;
          const [row] = await sql`select seq_tup_read as rows from pg_stat_user_tables where relname = 'message'`;
          return row;
        };
        const before = await scanned();
        expect((await readLaneReport(sql, Date.now(), PARK_MS)).pendingHooks).toBe(GROUPS);
        expect(await scanned()).toEqual(before);
      });
    });
  });

  test('tells the five newest errors, with the host and port alone of the target', async () => {
    const change = `
      update reverse_hook set last_error_at = timestamptz '2026-02-01' + id * interval '1 second',
        last_error_category = case when id % 2 = 0 then 'status' else 'timeout' end,
        last_error_code = case when id % 2 = 0 then 500 + id end where id <= 8;
      update reverse_hook set removed_at = now(), removed_by = 'target' where id = 8;
      update reverse_hook set removed_at = now(), removed_by = 'client' where id = 7`;
    await withHooks(change, async () => {
      const { errors } = await report();
      expect(errors.map(({ hookId }) => hookId)).toEqual([8, 6, 5, 4, 3]);
      expect(errors.slice(1, 3)).toEqual([
        {
          hookId: 6,
          conversationId: 6,
          host: 'user-6.example:8443',
          at: new Date('2026-02-01T00:00:06Z'),
          category: 'status',
          code: 506,
        },
        {
          hookId: 5,
          conversationId: 5,
          host: 'user-5.example:8443',
          at: new Date('2026-02-01T00:00:05Z'),
          category: 'timeout',
          code: null,
        },
      ]);
      expect(JSON.stringify(errors)).not.toMatch(/secret-path|key=1/);
    });
  });
});
