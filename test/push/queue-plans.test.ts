import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { deviceKinds } from '../../src/model/device.ts';
import type { AccountId, ConversationId, Seq } from '../../src/model/ids.ts';
import { claimDuePushes, msUntilNextDuePush } from '../../src/storage/push/push-claims.ts';
import { fanOut } from '../../src/storage/push/push-fan-out.ts';
import { expirePushes, settlePushes, cancelReadPushes } from '../../src/storage/push/push-settlement.ts';
import { readNotifiedContent } from '../../src/storage/push/push-content.ts';
import type { Pool } from '../../src/storage/db/pool.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

const CONVERSATIONS = 100_000;
const DAY_MS = 86_400_000;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await fill();
});
afterAll(() => database.drop());

/**
 * Inserts conversations of three members each, one of whom has a device. Each conversation has a message, and many have
 * waiting rows.
 */
async function fill(): Promise<void> {
  await database.query(async (sql) => {
    await sql.unsafe(`
      set synchronous_commit = off;
      -- All references are right by construction; checking them would take most of the time.
      set session_replication_role = replica;
      insert into account (kind, nick, name) select 'user', 'a' || n, 'A' from generate_series(1, ${CONVERSATIONS}) n;
      insert into conversation (kind, title) select 'group', 'G' from generate_series(1, ${CONVERSATIONS});
      insert into conversation_head (conversation_id, last_seq, last_rev, last_at) select id, 1, 1, now() from conversation;
      insert into membership (conversation_id, account_id, role)
      select n, (n * 7 + i) % ${CONVERSATIONS} + 1, 'member' from generate_series(1, ${CONVERSATIONS}) n, generate_series(0, 2) i;
      insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
      select n, 1, 1, n, 'hello @a' || n, now() from generate_series(1, ${CONVERSATIONS}) n;
      insert into session (account_id, token_hash, label) select n, n::text, '-' from generate_series(1, ${CONVERSATIONS}) n;
      insert into device (account_id, session_id, kind, token_hash, token_sealed, created_at)
      select n, n, 'web', n::text, '-', now() - interval '1 hour' from generate_series(1, ${CONVERSATIONS}) n;
      insert into push_cursor select n, 0 from generate_series(1, ${CONVERSATIONS}) n;
      insert into push_pending (device_id, conversation_id, kind, first_seq, last_seq, next_at)
      select n, n, 'web', 1, 1, now() + interval '1 hour' from generate_series(1, ${CONVERSATIONS}, 2) n;`);
    await sql`vacuum analyze`;
  });
}

const TABLES = [
  'account',
  'conversation',
  'conversation_head',
  'membership',
  'message',
  'session',
  'device',
  'push_cursor',
  'push_pending',
];

/** By name of a large table: the number of sequential scans so far. */
async function scanned(): Promise<Map<string, number>> {
  const rows = await database.query(
    (sql) => sql<{ name: string; count: number }[]>`
    select relname as name, seq_scan as count from pg_stat_user_tables
    where relname = any(${TABLES}::text[])`,
  );
  return new Map(rows.map(({ name, count }) => [name, count]));
}

/**
 * Runs `work` on sessions of its own, whose statistics are complete when they have ended. Returns the number of its
 * scans by table.
 */
async function scansOf(work: (pool: Pool) => Promise<void>): Promise<Map<string, number>> {
  const before = await scanned();
  const own = database.open({ generalPoolSize: 1 });
  await own.general.run((sql) => sql`select`);
  await work(own.general);
  await own.general.run((sql) => sql`select pg_stat_force_next_flush()`);
  await own.general.run((sql) => sql`select`);
  const after = await scanned();
  await own.stop();
  return new Map([...after].filter(([name, count]) => count !== before.get(name)));
}

test('among 100,000 conversations nothing on the way of a push reads a large table through', async () => {
  const ids = Array.from({ length: 100 }, (_, index) => (index * 997 + 1) as ConversationId);
  const rules = {
    kindsToNotify: deviceKinds,
    foregroundAccounts: [5 as AccountId],
    foregroundDelayMs: 60_000,
    maxAgeMs: DAY_MS,
  };
  expect(
    await scansOf(async (pool) => {
      expect(await fanOut(pool, ids, rules)).toEqual({ writtenPushes: expect.any(Number), conversationsWithMore: [] });
      const taken = await pool.run((sql) => claimDuePushes(sql, 'web', { limit: 100, forMs: 60_000 }));
      expect(taken).toHaveLength(100);
      const subjects = await pool.run((sql) => readNotifiedContent(sql, taken));
      expect(subjects.filter((subject) => subject !== null).length).toBeGreaterThan(90);
      await pool.run((sql) => msUntilNextDuePush(sql, 'web'));
      const settlements = taken.map(
        (claim, index) => ({ verdict: index % 2 === 0 ? 'done' : 'held', waitMs: 1, claim }) as const,
      );
      await pool.run((sql) => settlePushes(sql, settlements, DAY_MS));
      const positions = ids.map((conversationId) => ({ conversationId, accountId: 5 as AccountId, seq: 1 as Seq }));
      await pool.run((sql) => cancelReadPushes(sql, positions));
      await pool.run((sql) => expirePushes(sql, { maxAgeMs: DAY_MS, limit: 1_000 }));
    }),
  ).toEqual(new Map());
});

test('what a test of the plans would see is seen', async () => {
  expect(
    await scansOf(async (pool) => {
      await pool.run((sql) => sql`select count(*) from device where label is null`);
    }),
  ).toEqual(new Map([['device', expect.any(Number)]]));
});
