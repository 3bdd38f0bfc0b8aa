import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Database } from '../../../src/storage/database.ts';
import { Connection } from '../../../src/storage/db/connection.ts';
import { CommitUnknownError, DatabaseUnavailableError } from '../../../src/storage/db/database-error.ts';
import { MessageLog } from '../../../src/storage/messages/message-log.ts';
import type { TestDatabase } from '../../support/database.ts';
import { eventually, HANG_MS } from '../../support/eventually.ts';
import { PostgresCluster, type PostgresNode } from '../../support/postgres-cluster.ts';
import { keyedPost, logOptions, makeGroups, post, readWholeLog, type StoredGroup } from '../fixture.ts';

let cluster: PostgresCluster;
let primary: PostgresNode;
let standby: PostgresNode;
let database: TestDatabase;
let group: StoredGroup;
const logs: MessageLog[] = [];

beforeEach(async () => {
  cluster = await PostgresCluster.start();
  [primary, standby] = cluster.nodes as [PostgresNode, PostgresNode];
  database = cluster.asTestDatabase();
  [group] = (await makeGroups(database, 1)) as [StoredGroup];
});
afterEach(async () => {
  for (const log of logs.splice(0)) await log.stop();
  await database.drop();
  await cluster.stop();
});

function openLog(
  options: Parameters<typeof logOptions>[0] = {},
  changes: Parameters<TestDatabase['open']>[0] = {},
): { log: MessageLog; pools: Database } {
  const pools = database.open(changes);
  const log = new MessageLog(pools.intake, logOptions(options));
  logs.push(log);
  return { log, pools };
}

/** Makes every commit wait for the standby, which is suspended. */
async function stallCommits(): Promise<void> {
  await primary.configure({ synchronous_standby_names: standby.name });
  await eventually(
    () => primary.query((sql) => sql`select from pg_stat_replication where sync_state = 'sync'`),
    (rows) => rows.length === 1,
  );
  standby.pause();
}

const stalledBackends = (): Promise<number> =>
  primary.query(async (sql) => (await sql`select from pg_stat_activity where wait_event = 'SyncRep'`).length);

describe('a planned switchover', () => {
  test('within the time that a post may wait refuses none, and numbers go on', async () => {
    const { log } = openLog({ maxQueueWaitMs: 120_000 });
    let sent = 0;
    const traffic = { isOver: false };
    const call = async (): Promise<void> => {
      while (!traffic.isOver) await log.append(post(group, String((sent += 1))));
    };
    const callers = Promise.all(Array.from({ length: 8 }, call));
    await eventually(
      () => log.counts.posted,
      (posted) => posted > 50,
    );
    await primary.stop();
    await eventually(
      () => log.isSuspended,
      (suspended) => suspended,
    );
    await standby.promote();
    const before = log.counts.posted;
    await eventually(
      () => log.counts.posted,
      (posted) => posted > before + 50,
    );
    traffic.isOver = true;
    await callers;
    expect(log.counts.outageRefusals).toBe(0);
    const texts = (await readWholeLog(database)).map(({ text }) => Number(text));
    expect([...texts].sort((a, b) => a - b)).toEqual(Array.from({ length: sent }, (_, index) => index + 1));
  });

  test('that lasts longer refuses those that have waited, and later ones at once', async () => {
    const { log } = openLog({ maxQueueWaitMs: 300 });
    await log.append(post(group, 'before'));
    await primary.stop();
    // The log refuses a post that it never sent, or whose transaction PostgreSQL reported as rolled back.
    const waiting = [log.append(post(group, 'one')), log.append(post(group, 'two'))];
    for (const each of await Promise.allSettled(waiting)) {
      expect(each).toMatchObject({ status: 'rejected', reason: expect.any(DatabaseUnavailableError) });
    }
    await eventually(
      () => log.counts.outageRefusals,
      (refusals) => refusals === 2,
    );
    await expect(log.append(post(group, 'three'))).rejects.toThrow(DatabaseUnavailableError);
    expect(log.counts.outageRefusals).toBe(3);
    await standby.promote();
    await eventually(
      () => log.isSuspended,
      (suspended) => !suspended,
    );
    await log.append(post(group, 'after'));
    expect((await readWholeLog(database)).map(({ text }) => text)).toEqual(['before', 'after']);
  });
});

describe('commits that wait for a standby', () => {
  test('cost one process of the server, not one for each try, and are there once when the standby is back', async () => {
    const { log } = openLog({ maxQueueWaitMs: 100 }, { flushTimeoutMs: 500, connectTimeoutMs: 2_000 });
    await log.append(keyedPost(group, 'k0', 'before'));
    await stallCommits();
    await expect(log.append(keyedPost(group, 'k1', 'stalled'))).rejects.toThrow(CommitUnknownError);
    // Reads succeed while commits stall. If the log tested the database only by reads, it would let one post after the
    // other stall.
    for (let n = 0; n < 40; n += 1) {
      await expect(log.append(keyedPost(group, `late ${n}`, 'late'))).rejects.toThrow(DatabaseUnavailableError);
      expect(await stalledBackends()).toBe(1);
    }
    expect(log.isSuspended).toBe(true);
    standby.resume();
    await eventually(
      () => log.isSuspended,
      (suspended) => !suspended,
    );
    // The repeat by the caller, with the same key, finds the written message.
    expect(await log.append(keyedPost(group, 'k1', 'stalled'))).toMatchObject({ outcome: 'repeat', seq: 2 });
    expect((await readWholeLog(database)).map(({ text }) => text)).toEqual(['before', 'stalled']);
  });

  test('take no more connections than a pool has, and reads get those that are left', async () => {
    const { pools } = openLog({}, { generalPoolSize: 3, databaseCallTimeoutMs: 500, connectTimeoutMs: 2_000 });
    await stallCommits();
    const write = (): Promise<unknown> =>
      pools.general.run((sql) => sql`update account set name = name where id = ${group.accountId}`);
    await expect(write()).rejects.toThrow(CommitUnknownError);
    for (let n = 0; n < 10; n += 1) {
      expect(await pools.general.run((sql) => sql`select 1 as one`, 20_000)).toEqual([{ one: 1 }]);
    }
    expect(await stalledBackends()).toBe(1);
    const insert = (): Promise<unknown> =>
      pools.general.run((sql) => sql`insert into account (kind, name) values ('webhook', 'x')`);
    for (let n = 0; n < 3; n += 1) await Promise.allSettled([insert(), insert(), insert()]);
    expect(await stalledBackends()).toBeLessThanOrEqual(3);
    await expect(insert()).rejects.toThrow(/still has to commit what it was sent before/);
    standby.resume();
    await eventually(
      () =>
        insert().then(
          () => true,
          () => false,
        ),
      Boolean,
    );
  });

  test('and are told not to wait any more are no success: nobody knows whether the standby has them', async () => {
    const { log } = openLog({}, { flushTimeoutMs: 20_000 });
    await log.append(post(group, 'before'));
    await stallCommits();
    const answer = log.append(post(group, 'in doubt'));
    const failure = expect(answer).rejects.toThrow(/told not to wait for its standby/);
    await eventually(stalledBackends, (count) => count === 1);
    await primary.query((sql) => sql`select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`);
    await failure;
    await expect(answer).rejects.toThrow(CommitUnknownError);
    standby.resume();
  });
});

describe('a new timeline', () => {
  test('makes an unknown outcome of what the former primary answers once it is known', async () => {
    const { pools } = openLog();
    const holder = new Connection(primary.target, 'holder');
    const held = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const holding = holder.run(async (sql) => {
      await sql`select pg_advisory_lock(7)`;
      held.resolve();
      await release.promise;
      await sql`select pg_advisory_unlock(7)`;
    }, HANG_MS);
    await held.promise;
    const late = pools.live.run(async (sql) => {
      await sql`set lock_timeout = 0`;
      await sql`select pg_advisory_lock(7)`;
    }, HANG_MS);
    const failure = expect(late).rejects.toThrow(/may lack what the former primary answered/);
    await eventually(
      () => primary.query((sql) => sql`select from pg_locks where locktype = 'advisory' and not granted`),
      (rows) => rows.length === 1,
    );
    await standby.promote();
    primary.pause();
    await eventually(
      () =>
        pools.lease
          .run((sql) => sql`select 1`, 2_000)
          .then(
            () => pools.timeline,
            () => 0,
          ),
      (timeline) => timeline === 2,
    );
    primary.resume();
    release.resolve();
    await failure;
    await expect(late).rejects.toThrow(CommitUnknownError);
    await holding;
    holder.close();
  });

  test('is told once, before anything is written in it, and an older primary is refused from then on', async () => {
    const { log, pools } = openLog({ maxQueueWaitMs: 120_000 });
    await log.append(post(group, 'before'));
    expect(pools.timeline).toBe(1);
    const told: number[] = [];
    const gate = Promise.withResolvers<void>();
    pools.onNewTimeline = (timeline) => {
      told.push(timeline);
      return gate.promise;
    };
    await cluster.untilCaughtUp(primary, standby);
    // The former primary is cut off: it does not know of its successor.
    await standby.promote();
    primary.pause();
    await pools.lease.run((sql) => sql`select 1`, 500).catch(() => {});
    await eventually(
      () =>
        pools.lease
          .run((sql) => sql`select 1`, 2_000)
          .then(
            () => true,
            () => false,
          ),
      Boolean,
    );
    await eventually(
      () => told,
      (timelines) => timelines.length > 0,
    );
    const held = log.append(post(group, 'after'));
    await expect(pools.general.run((sql) => sql`select 1`, 500)).rejects.toThrow();
    expect(log.counts.posted).toBe(1);
    gate.resolve();
    expect(await held).toMatchObject({ outcome: 'new', seq: 2, logEpoch: 0 });
    expect(told).toEqual([2]);
    expect(pools.timeline).toBe(2);
    primary.resume();
    await standby.stop();
    const failure = await pools.general.run((sql) => sql`select 1`, 5_000).catch((error: Error) => error);
    expect((failure as Error).message).toContain('it is on timeline 1, and 2 has begun');
    await standby.start();
  });
});
