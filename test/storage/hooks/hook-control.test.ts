import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { HookId, Seq } from '../../../src/model/ids.ts';
import type { Transaction } from '../../../src/storage/db/connection.ts';
import {
  applyHookChanges,
  lockHook,
  redeliverFrom,
  redeliverSelectedUnlessTooMany,
  skipBacklog,
  type LockedHook,
} from '../../../src/storage/hooks/hook-control.ts';
import { firstSeqSince } from '../../../src/storage/messages/first-seq-since.ts';
import { claimPing } from '../../../src/storage/hooks/hook-ping.ts';
import { findHooks, markHookRemovedByClient } from '../../../src/storage/hooks/hooks.ts';
import { claimPartitions } from '../../../src/storage/hooks/leases.ts';
import type { Pool } from '../../../src/storage/db/pool.ts';
import type { SettlementWriter } from '../../../src/storage/hooks/settlement-writer.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { holdOpen, isWaiting, makeGroups, makeHook, until, type StoredGroup, UNTROUBLED } from '../fixture.ts';

const MESSAGES = 200;

let database: TestDatabase;
let pool: Pool;
let settling: SettlementWriter;
let group: StoredGroup;
let hook: HookId;

beforeAll(async () => {
  database = await createTestDatabase();
  ({ general: pool, settle: settling } = database.open({ lockTimeoutMs: 60_000, databaseCallTimeoutMs: 60_000 }));
  await pool.run((sql) => claimPartitions(sql, { holder: 'us', leaseMs: 60_000 }));
  group = (await makeGroups(database, 1))[0]!;
  // Several messages share a time, and some times have no message.
  await database.query(
    (sql) => sql`
      insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
      select ${group.id}, n, n, ${group.accountId}, 'text', timestamptz '2026-11-21Z' + make_interval(secs => (n / 7) * 5)
      from generate_series(1, ${MESSAGES}) n`,
  );
  await database.query(
    (sql) => sql`
      update conversation_head set last_seq = ${MESSAGES}, last_rev = ${MESSAGES} where conversation_id = ${group.id}`,
  );
});
afterAll(() => database.drop());
beforeEach(async () => {
  hook = await makeHook(database, group, { startAfterSeq: 100 as Seq });
});

const reference = () => ({ conversationId: group.id, hookId: hook });

const locked = <T>(work: (tx: Transaction, hook: LockedHook) => Promise<T>): Promise<T> =>
  pool.transaction(async (tx) => work(tx, (await lockHook(tx, reference()))!));

const info = async () => (await database.query((sql) => findHooks(sql, group.id, hook)))[0]!;

async function row(): Promise<Record<string, unknown>> {
  const [found] = await database.query(
    (sql) => sql`select cursor, generation, cursor_generation from reverse_hook where id = ${hook}`,
  );
  return { ...found };
}

describe('lockHook()', () => {
  test('finds a hook of its group, and none that was removed', async () => {
    expect(await locked(async (_tx, found) => found)).toMatchObject({
      hookId: hook,
      startAfterSeq: 100,
      lastSeq: MESSAGES,
    });
    const [other] = await makeGroups(database, 1);
    const theirs = { conversationId: other!.id, hookId: hook };
    expect(await pool.transaction((tx) => lockHook(tx, theirs))).toBeNull();
    await database.query((sql) => markHookRemovedByClient(sql, group.id, hook));
    expect(await pool.transaction((tx) => lockHook(tx, reference()))).toBeNull();
  });

  test('waits for a settlement, sees what it wrote, and holds nobody up who posts', async () => {
    const held = await holdOpen(database.target, (tx) => tx`update reverse_hook set cursor = 150 where id = ${hook}`);
    const first = locked((tx, found) => redeliverFrom(tx, found, { seq: 180, since: null }));
    await until(database, (sql) => isWaiting(sql, 'general'));
    // The waiting write holds no lock of the group's head, so this update does not block.
    await database.query(
      (sql) => sql`update conversation_head set last_at = now() where conversation_id = ${group.id}`,
    );
    await held.release();
    expect(await first).toBe(151);
  });
});

describe('firstSeqSince()', () => {
  test('finds the same message as a look at all of them', async () => {
    for (const after of [0, 7, 100, MESSAGES - 1, MESSAGES] as Seq[]) {
      for (let second = -3; second < 150; second += 1) {
        const moment = new Date(Date.parse('2026-11-21T00:00:00Z') + second * 1_000);
        const place = { conversationId: group.id, after, lastSeq: MESSAGES as Seq };
        const [found, [all]] = await database.query(async (sql) => [
          await firstSeqSince(sql, place, moment),
          await sql<{ seq: number }[]>`
            select coalesce(min(seq), ${MESSAGES + 1}) as seq from message
            where conversation_id = ${group.id} and seq > ${after} and sent_at >= ${moment}`,
        ]);
        expect([after, second, found]).toEqual([after, second, all!.seq]);
      }
    }
  });
});

describe('control writes', () => {
  test('raise the generation once each, and that of the cursor only when they move it', async () => {
    await locked((tx, found) => applyHookChanges(tx, found, { paused: true, order: 'none', secretSealed: 'new' }));
    expect(await row()).toEqual({ cursor: 100, generation: 1, cursor_generation: 0 });
    await locked((tx, found) => redeliverSelectedUnlessTooMany(tx, found, [101 as Seq]));
    expect(await row()).toEqual({ cursor: 100, generation: 2, cursor_generation: 0 });
    await locked((tx, found) => redeliverFrom(tx, found, { seq: 1, since: null }));
    expect(await row()).toEqual({ cursor: 100, generation: 3, cursor_generation: 3 });
    await locked((tx, found) => applyHookChanges(tx, found, { paused: false }));
    expect(await row()).toEqual({ cursor: 100, generation: 4, cursor_generation: 3 });
    await locked((tx, found) => skipBacklog(tx, found));
    expect(await row()).toEqual({ cursor: MESSAGES, generation: 5, cursor_generation: 5 });
  });

  test('leave a hook that becomes strict what failed, though the cursor is still below it', async () => {
    await locked((tx, found) => applyHookChanges(tx, found, { order: 'none' }));
    await database.query((sql) => sql`update reverse_hook set cursor = 120 where id = ${hook}`);
    await locked((tx, found) => redeliverSelectedUnlessTooMany(tx, found, [110, 130] as Seq[]));
    await locked((tx, found) => applyHookChanges(tx, found, { order: 'strict' }));
    const seqs = database.query((sql) => sql`select seq from delivery_retry where hook_id = ${hook} order by seq`);
    expect(await seqs).toEqual([{ seq: 110 }, { seq: 130 }]);
  });

  test('count what is repeated apart as pending, with its age', async () => {
    await locked((tx, found) => skipBacklog(tx, found));
    expect(await info()).toMatchObject({ pending: 0, oldestPendingAt: null, nextAttemptAt: null });
    await locked((tx, found) => redeliverSelectedUnlessTooMany(tx, found, [170, 120, 150] as Seq[]));
    const { pending, oldestPendingAt, nextAttemptAt } = await info();
    expect({ pending, oldestPendingAt }).toEqual({ pending: 3, oldestPendingAt: new Date('2026-11-21T00:01:25Z') });
    expect(nextAttemptAt).not.toBeNull();
    // One row can cover a batch: this one then covers the messages 120 to 130.
    await database.query((sql) => sql`update delivery_retry set last_seq = 130 where hook_id = ${hook} and seq = 120`);
    expect(await info()).toMatchObject({ pending: 13 });
    expect(await locked((tx, found) => skipBacklog(tx, found))).toEqual({ firstSeq: 120, lastSeq: 170, count: 13 });
    expect(await info()).toMatchObject({ pending: 0 });
  });

  test('let a message be sent again that was asked for while its last delivery was not settled', async () => {
    const over = (seq: number) =>
      ({ seq: seq as Seq, lastSeq: seq as Seq, rev: 0, lastRev: 0, attempts: 1, nextAt: null }) as const;
    const settle = (generation: number, seq: number): Promise<unknown> => {
      const place = { hookId: hook, generation, epoch: 1, cursor: 100 as Seq, ...UNTROUBLED, attempts: [] };
      return settling.write([{ ...place, retries: [over(seq)] }]);
    };
    const seqs = (): Promise<unknown> =>
      database.query(async (sql) => [
        ...(await sql`select seq from delivery_retry where hook_id = ${hook} order by seq`),
      ]);
    const askFor = (...asked: number[]): Promise<unknown> =>
      locked((tx, found) => redeliverSelectedUnlessTooMany(tx, found, asked as Seq[]));
    await askFor(90, 95);
    await askFor(90);
    // These settlements come from a lane that read the hook before the second request, and that has sent both messages.
    await settle(1, 90);
    await settle(1, 95);
    expect(await seqs()).toEqual([{ seq: 90 }]);
    await settle(2, 90);
    expect(await seqs()).toEqual([]);
  });

  test('of many at once, with settlements among them, all end, one after the other', async () => {
    const settlement = (generation: number) => ({
      hookId: hook,
      generation,
      epoch: 1,
      cursor: 150 as Seq,
      ...UNTROUBLED,
      attempts: [],
    });
    const writes = Array.from({ length: 40 }, (_, n) => [
      locked((tx, found) => applyHookChanges(tx, found, { paused: n % 2 === 0 })),
      locked((tx, found) => redeliverFrom(tx, found, { seq: 120, since: null })),
      locked((tx, found) => redeliverSelectedUnlessTooMany(tx, found, [(110 + n) as Seq, (109 - (n % 5)) as Seq])),
      locked((tx, found) => skipBacklog(tx, found)),
      pool.run((sql) => claimPing(sql, reference(), 0)),
    ]).flat();
    // Writes settlements one after the other, as the settler does.
    const settle = async (): Promise<void> => {
      for (let n = 0; n < 40; n += 1) await settling.write([settlement(n * 4)]);
    };
    await Promise.all([...writes, settle()]);
    const { cursor, generation } = (await row()) as { cursor: number; generation: number };
    expect(cursor).toBeGreaterThanOrEqual(100);
    expect(cursor).toBeLessThanOrEqual(MESSAGES);
    expect(generation).toBeGreaterThanOrEqual(80);
  });
});
