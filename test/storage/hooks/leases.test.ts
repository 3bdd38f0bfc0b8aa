import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { HookId, Seq } from '../../../src/model/ids.ts';
import { PARTITIONS } from '../../../src/storage/hooks/lanes.ts';
import {
  claimPartitions,
  findLease,
  findMsUntilPeerExpiry,
  releaseAllPartitions,
  releasePartitions,
  renewPartitions,
  type HeldPartition,
} from '../../../src/storage/hooks/leases.ts';
import type { Pool } from '../../../src/storage/db/pool.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { holdOpen, settle, UNTROUBLED } from '../fixture.ts';

const LEASE_MS = 10_000;

let database: TestDatabase;
let pool: Pool;

beforeEach(async () => {
  database = await createTestDatabase();
  pool = database.open().general;
});
afterEach(() => database.drop());

const claim = (
  holder: string,
  alreadyHeldPartitions: readonly number[] = [],
  maxClaimedPartitions = PARTITIONS,
): Promise<HeldPartition[]> =>
  pool.run((sql) => claimPartitions(sql, { holder, alreadyHeldPartitions, maxClaimedPartitions, leaseMs: LEASE_MS }));
const renew = (holder: string, held: readonly HeldPartition[]): Promise<number[]> =>
  pool.run((sql) => renewPartitions(sql, holder, held, LEASE_MS));
const release = (holder: string): Promise<void> => pool.run((sql) => releaseAllPartitions(sql, holder));

/** Lets the leases of these partitions expire. */
const expire = (partitions: readonly number[]): Promise<unknown> =>
  database.query(
    (sql) => sql`update lease set expires_at = clock_timestamp() - interval '1 ms'
      where partition = any(${[...partitions]}::int[])`,
  );
const byPartition = (held: readonly HeldPartition[]): Map<number, number> =>
  new Map(held.map(({ partition, epoch }) => [partition, epoch]));

describe('leases', () => {
  test('all go to the first who claims them, and a second one finds nothing', async () => {
    const held = await claim('a');
    expect(held.map(({ partition }) => partition).sort((x, y) => x - y)).toEqual(
      Array.from({ length: PARTITIONS }, (_, i) => i),
    );
    expect(new Set(held.map(({ epoch }) => epoch))).toEqual(new Set([1]));
    expect(await claim('b')).toEqual([]);
    expect((await renew('a', held)).length).toBe(PARTITIONS);
  });

  test('can be claimed by another when they have run out, and then no longer be renewed by the first', async () => {
    const held = await claim('a');
    await expire([3, 5]);
    expect(byPartition(await claim('b'))).toEqual(
      new Map([
        [3, 2],
        [5, 2],
      ]),
    );
    const kept = await renew('a', held);
    expect(kept).toHaveLength(PARTITIONS - 2);
    expect(kept).not.toContain(3);
    expect(kept).not.toContain(5);
  });

  test('that have run out are still renewed while nobody else has claimed them', async () => {
    const held = await claim('a');
    await expire([3]);
    expect(await renew('a', held)).toHaveLength(PARTITIONS);
    expect(await claim('b')).toEqual([]);
  });

  test('get epochs that nobody can have held in the timeline before', async () => {
    const claimIn = (holder: string, timeline: number): Promise<HeldPartition[]> =>
      pool.run((sql) => claimPartitions(sql, { holder, timeline, leaseMs: LEASE_MS, maxClaimedPartitions: 1 }));
    const epochs: number[] = [];
    // The timelines, by position: unknown, the first one, unknown again, after a promotion, unchanged, and after a
    // restore into a new cluster.
    for (const timeline of [0, 1, 0, 2, 2, 1]) {
      const [held] = await claimIn('a', timeline);
      epochs.push(held!.epoch);
    }
    expect(epochs).toEqual([1, 2, 3, 1_003, 1_004, 2_004]);
  });

  test('are claimed at once by the same holder again, with a higher epoch that shuts the one before out', async () => {
    const killed = await claim('a');
    const successor = await claim('a');
    expect(new Set(successor.map(({ epoch }) => epoch))).toEqual(new Set([2]));
    expect(await renew('a', killed)).toEqual([]);
    expect(await renew('a', successor)).toHaveLength(PARTITIONS);
  });

  test('that the holder knows it has are left out of a claim', async () => {
    await claim('a');
    const others = await claim(
      'a',
      Array.from({ length: PARTITIONS - 1 }, (_, i) => i),
    );
    expect(byPartition(others)).toEqual(new Map([[PARTITIONS - 1, 2]]));
  });

  test('are free at once when they are given back, and only those of the giver', async () => {
    await claim('a');
    await expire([7]);
    await claim('b');
    await release('a');
    expect(await claim('c')).toHaveLength(PARTITIONS - 1);
    expect((await database.query((sql) => sql`select holder from lease where partition = 7`))[0]).toEqual({
      holder: 'b',
    });
  });

  test('are claimed up to the capacity that there is, those of the same holder whatever the capacity', async () => {
    const killed = await claim('a', [], 20);
    expect(killed).toHaveLength(20);
    expect(await claim('b', [], 10)).toHaveLength(10);
    const successor = await claim('a', [], 5);
    expect(new Set(successor.map(({ partition }) => partition))).toEqual(
      new Set(killed.map(({ partition }) => partition)),
    );
    expect(
      await claim(
        'a',
        successor.map(({ partition }) => partition),
        0,
      ),
    ).toEqual([]);
  });

  test('can be given back one by one, and only under the epoch that they were taken with', async () => {
    const [first, second] = await claim('a');
    const old = { ...second!, epoch: second!.epoch - 1 };
    await pool.run((sql) => releasePartitions(sql, 'a', [first!, old]));
    expect((await claim('b')).map(({ partition }) => partition)).toEqual([first!.partition]);
  });

  test('tell who delivers for a partition now, and for how long', async () => {
    expect(await pool.run((sql) => findLease(sql, 3))).toEqual({ holder: null, epoch: 0, remainingMs: 0 });
    expect(await pool.run((sql) => findMsUntilPeerExpiry(sql, 'b'))).toBeNull();
    await claim('a');
    const state = await pool.run((sql) => findLease(sql, 3));
    expect(state).toMatchObject({ holder: 'a', epoch: 1 });
    for (const ms of [state.remainingMs, await pool.run((sql) => findMsUntilPeerExpiry(sql, 'b'))]) {
      expect(ms).toBeGreaterThan(LEASE_MS - 2_000);
      expect(ms).toBeLessThanOrEqual(LEASE_MS);
    }
    expect(await pool.run((sql) => findMsUntilPeerExpiry(sql, 'a'))).toBeNull();
    await expire([3]);
    expect(await pool.run((sql) => findLease(sql, 3))).toEqual({ holder: null, epoch: 1, remainingMs: 0 });
    expect(await pool.run((sql) => findMsUntilPeerExpiry(sql, 'b'))).toBeGreaterThan(LEASE_MS - 2_000);
  });

  test('that somebody has locked are passed over, not waited for', async () => {
    const lock = await holdOpen(database.target, (tx) => tx`select from lease where partition = 9 for share`);
    expect(await claim('a')).toHaveLength(PARTITIONS - 1);
    await lock.release();
    expect(byPartition(await claim('b'))).toEqual(new Map([[9, 1]]));
  });

  test('never belong to two holders that claim at the same time', async () => {
    for (let round = 0; round < 20; round += 1) {
      await expire(Array.from({ length: PARTITIONS }, (_, i) => i));
      const holders = Array.from({ length: 4 }, (_, i) => `${round}-${i}`);
      const claims = await Promise.all(holders.map((holder) => claim(holder)));
      const partitions = claims.flat().map(({ partition }) => partition);
      expect(new Set(partitions).size).toBe(partitions.length);
      const kept = await Promise.all(claims.map((held, i) => renew(holders[i]!, held)));
      expect(kept.map((k) => k.length)).toEqual(claims.map((held) => held.length));
    }
  });

  test('are renewed while settlements are written without the two waiting for each other', async () => {
    const held = (await claim('a')).reverse();
    const epochs = byPartition(held);
    const settlements = Array.from({ length: 200 }, (_, i) => ({
      hookId: (i + 1) as HookId,
      generation: 0,
      epoch: epochs.get((i + 1) % PARTITIONS)!,
      cursor: 0 as Seq,
      ...UNTROUBLED,
      attempts: [],
    }));
    const settling = async (): Promise<void> => {
      for (let i = 0; i < 40; i += 1) await pool.run((sql) => settle(sql, settlements));
    };
    const renewing = async (): Promise<void> => {
      for (let i = 0; i < 80; i += 1) expect(await renew('a', held)).toHaveLength(PARTITIONS);
    };
    await Promise.all([settling(), renewing(), settling()]);
  });
});
