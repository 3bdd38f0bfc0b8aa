import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Sql } from '../../../src/storage/db/connection.ts';
import { DatabaseUnavailableError, CommitUnknownError } from '../../../src/storage/db/database-error.ts';
import { Pool, type PoolOptions } from '../../../src/storage/db/pool.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { until } from '../fixture.ts';

let database: TestDatabase;
const pools: Pool[] = [];

beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
  await database.query((sql) => sql`create table note (text text not null)`);
});
afterAll(() => database.drop());
afterEach(async () => {
  for (const pool of pools.splice(0)) pool.stop();
  await until(database, async (sql) => {
    const rows = await sql`select from pg_stat_activity where application_name = 'klatch pooled'`;
    return rows.length === 0;
  });
});

function open(options: Partial<PoolOptions> = {}): Pool {
  const pool = new Pool(database.target, {
    name: 'pooled',
    maxConnections: 1,
    maxWaitingCalls: 2,
    timeoutMs: 5_000,
    ...options,
  });
  pools.push(pool);
  return pool;
}

/** Occupies one connection until `free` is called. */
function occupy(pool: Pool): { free: () => void; done: Promise<string> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const work = async (): Promise<string> => {
    await promise;
    return 'occupied';
  };
  return { free: resolve, done: pool.run(work) };
}

const one = (sql: Sql): Promise<unknown> => sql`select 1 as one`;

describe('Pool', () => {
  test('lets so many calls wait and refuses one more at once; those that wait are served in order', async () => {
    const pool = open();
    const first = occupy(pool);
    const served: number[] = [];
    const waiting = [1, 2].map((n) => pool.run(async () => served.push(n)));
    expect(pool.waitingCalls).toBe(2);
    await expect(pool.run(one)).rejects.toThrow(DatabaseUnavailableError);
    expect([pool.maxConnections, pool.busyConnections, pool.counts.refusedCalls]).toEqual([1, 1, 1]);
    first.free();
    await Promise.all([first.done, ...waiting]);
    expect(served).toEqual([1, 2]);
    expect(pool.waitingCalls).toBe(0);
    // `waitS` counts only the two calls that had to wait, and not the call that found the connection free.
    expect([pool.busyConnections, pool.counts.waitS.read().count]).toEqual([0, 2]);
  });

  test('refuses a call that waited too long, and never begins it', async () => {
    const pool = open();
    const first = occupy(pool);
    let begun = false;
    const late = pool.run(async () => (begun = true), 50);
    await expect(late).rejects.toThrow(DatabaseUnavailableError);
    expect(pool.counts.refusedCalls).toBe(1);
    first.free();
    await first.done;
    await pool.run(one);
    expect(begun).toBe(false);
  });

  test('counts the waiting into the deadline of a call', async () => {
    const pool = open();
    const first = occupy(pool);
    const { promise: fromItsBeginning, resolve } = Promise.withResolvers<string>();
    const second = pool.run(async (sql) => {
      setTimeout(resolve, 6_000, 'from its beginning');
      return sql`select pg_sleep(15)`;
    }, 6_000);
    const ended = second.catch((error: unknown) => error);
    setTimeout(first.free, 500);
    expect(await Promise.race([ended, fromItsBeginning])).toBeInstanceOf(CommitUnknownError);
    await fromItsBeginning;
  });

  test('runs as many calls at once as it has connections', async () => {
    const pool = open({ maxConnections: 3 });
    const three = [occupy(pool), occupy(pool), occupy(pool)];
    expect(pool.waitingCalls).toBe(0);
    const fourth = pool.run(one);
    expect(pool.waitingCalls).toBe(1);
    for (const { free } of three) free();
    await Promise.all([...three.map(({ done }) => done), fourth]);
  });

  test('has its connection back after a failing call', async () => {
    const pool = open();
    for (let i = 0; i < 3; i += 1) {
      await expect(pool.run((sql) => sql`select 1 / 0`)).rejects.toMatchObject({ code: '22012' });
      await expect(pool.run(() => Promise.reject(new Error('ours')))).rejects.toThrow('ours');
    }
    await expect(pool.run((sql) => sql`select pg_sleep(1)`, 50)).rejects.toThrow(CommitUnknownError);
    expect(await pool.run(one)).toEqual([{ one: 1 }]);
  });

  test('commits a transaction whose work resolves, and rolls back one whose work rejects', async () => {
    const pool = open();
    await pool.transaction((tx) => tx`insert into note values ('kept')`);
    const failing = pool.transaction(async (tx) => {
      await tx`insert into note values ('dropped')`;
      throw new Error('ours');
    });
    await expect(failing).rejects.toThrow('ours');
    expect(await pool.run((sql) => sql`select text from note`)).toEqual([{ text: 'kept' }]);
  });

  test('rejects what waits and what is under way when it stops, and takes no more', async () => {
    const pool = open();
    const running = pool.run((sql) => sql`select pg_sleep(2)`);
    const waiting = pool.run(one);
    await until(database, async (sql) => {
      const rows =
        await sql`select from pg_stat_activity where application_name = 'klatch pooled' and wait_event = 'PgSleep'`;
      return rows.length === 1;
    });
    pool.stop();
    pool.stop();
    await expect(waiting).rejects.toThrow(DatabaseUnavailableError);
    await expect(running).rejects.toThrow(CommitUnknownError);
    await expect(pool.run(one)).rejects.toThrow(DatabaseUnavailableError);
    await database.query(
      (sql) => sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'klatch pooled'`,
    );
  });

  test('opens no session for a call that was made in the turn of the stop', async () => {
    const pool = open();
    let begun = false;
    const call = pool.run(async () => (begun = true));
    pool.stop();
    await expect(call).rejects.toThrow(DatabaseUnavailableError);
    expect(begun).toBe(false);
  });
});

describe('Database', () => {
  test('keeps its uses apart: the intake answers while all general connections are taken', async () => {
    const opened = database.open({ generalPoolSize: 1, poolQueue: 1 });
    const first = occupy(opened.general);
    const second = opened.general.run(one);
    await expect(opened.ping(1_000)).rejects.toThrow(DatabaseUnavailableError);
    for (const pool of [opened.intake, opened.lease]) expect(await pool.run(one)).toEqual([{ one: 1 }]);
    first.free();
    await Promise.all([first.done, second]);
    await opened.ping(1_000);
    await opened.stop();
  });
});
