import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { reportDatabase } from '../../src/storage/database-report.ts';
import { newestSchemaVersion } from '../../src/storage/db/migration-files.ts';
import { reportHooks } from '../../src/storage/hooks/hook-report.ts';
import { withReadOnlyTransaction } from '../../src/storage/db/read-only.ts';
import { createOrCheckCanary, Sealer } from '../../src/storage/db/sealed.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { makeGroups, makeHook } from './fixture.ts';

const sealer = new Sealer('a secret for tests that is long enough to be taken');
const options = { sealer, timeoutMs: 5_000 };

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(async () => database.drop());

describe('the report about a database', () => {
  test('has its version, its schema and the settings of the sessions', async () => {
    expect(await reportDatabase(database.target, options)).toMatchObject({
      version: expect.stringMatching(/^\d+\.\d+/),
      versionNumber: expect.any(Number),
      encoding: 'UTF8',
      readOnly: false,
      // The database server of the tests runs with these two settings.
      fsync: 'off',
      fullPageWrites: 'off',
      schema: newestSchemaVersion(),
      schemaMismatch: null,
      secretFits: null,
      longTransactions: 0,
      waitingLocks: 0,
      blockerPids: [],
    });
  });

  test('compares the clocks: on one machine they are the same', async () => {
    const { clockAheadMs } = await reportDatabase(database.target, options);
    expect(Math.abs(clockAheadMs)).toBeLessThan(1_000);
  });

  test('counts an empty database as one without a schema', async () => {
    const empty = await createTestDatabase({ empty: true });
    try {
      expect(await reportDatabase(empty.target, options)).toMatchObject({ schema: 0, secretFits: null });
    } finally {
      await empty.drop();
    }
  });

  test('tells whether the secret opens what is sealed in it', async () => {
    await database.query(async (sql) => createOrCheckCanary(sql, sealer));
    expect((await reportDatabase(database.target, options)).secretFits).toBe(true);
    const other = new Sealer('another secret for tests that is long enough too');
    expect((await reportDatabase(database.target, { ...options, sealer: other })).secretFits).toBe(false);
  });

  test('takes the narrowest of the bounds on connections', async () => {
    const wide = await reportDatabase(database.target, options);
    expect(wide.connections).toBeGreaterThan(100);
    expect(wide.connectionsTaken).toBeGreaterThan(0);
    await database.query((sql) => sql.unsafe(`alter database ${database.target.database} connection limit 12`));
    expect((await reportDatabase(database.target, options)).connections).toBe(12);
    await database.query((sql) => sql.unsafe(`alter database ${database.target.database} connection limit -1`));
  });

  test('counts the sessions of a Klatch', async () => {
    const counted = async (): Promise<number> => (await reportDatabase(database.target, options)).klatchConnections;
    // The database ends the sessions of earlier tests a moment after their sockets closed.
    await eventually(counted, (count) => count === 0);
    await database.open().ping(5_000);
    await eventually(counted, (count) => count === 1);
  });

  test('sees open transactions, locks that are waited for, and who holds them up', async () => {
    const holder = database.open().general;
    const waiter = database.open({ lockTimeoutMs: 20_000 }).general;
    let waiting: Promise<unknown> = Promise.resolve();
    await holder.transaction(async (tx) => {
      const [row] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`;
      await tx`lock table notice in access exclusive mode`;
      waiting = waiter.run((sql) => sql`select from notice`, 20_000);
      const report = await eventually(
        () => reportDatabase(database.target, { ...options, longTransactionS: 0 }),
        ({ waitingLocks }) => waitingLocks > 0,
      );
      expect(report).toMatchObject({ waitingLocks: 1, blockerPids: [row!.pid] });
      expect(report.longTransactions).toBeGreaterThanOrEqual(1);
    });
    await waiting;
    expect(await reportDatabase(database.target, options)).toMatchObject({ waitingLocks: 0, longTransactions: 0 });
  });

  test('changes nothing: its transaction is read-only', async () => {
    const writing = withReadOnlyTransaction(
      database.target,
      5_000,
      (tx) => tx`insert into setting (name, value) values ('x', 'y')`,
    );
    await expect(writing).rejects.toMatchObject({ code: '25006' });
  });
});

describe('the report about hooks', () => {
  const bounds = { hosts: 10, failing: 2, removedDays: 30, timeoutMs: 5_000 };

  test('has hosts without paths, failing hooks, and who asks for server keys', async () => {
    const [group] = await makeGroups(database, 1);
    const id = group!.id;
    const urls = ['http://a.example:8080/secret-path', 'http://a.example:8080/other?key=1', 'https://[fd00::1]/x'];
    for (const url of urls) await makeHook(database, group!, { url });
    await database.query(
      (sql) => sql`
        update reverse_hook set failures = 3, failing_since = now() - interval '1 hour', signature = 'both',
          last_error_category = 'status', last_error_code = 503
        where url like '%other%'`,
    );
    const report = await reportHooks(database.target, bounds);
    expect(report.hosts).toEqual([
      { authority: 'a.example:8080', hooks: 2, ids: [expect.any(Number), expect.any(Number)] },
      { authority: '[fd00::1]', hooks: 1, ids: [expect.any(Number)] },
    ]);
    expect(report.keySignedHooks).toBe(1);
    expect(report.failing).toMatchObject({
      count: 1,
      hooks: [{ conversationId: id, authority: 'a.example:8080', category: 'status', code: 503 }],
    });
    expect(JSON.stringify(report)).not.toMatch(/secret-path|key=1/);
  });
});
