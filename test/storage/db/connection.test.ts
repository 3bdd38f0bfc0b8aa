import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import postgres from 'postgres';
import { Connection, type ConnectionTarget, type Sql } from '../../../src/storage/db/connection.ts';
import {
  DatabaseUnavailableError,
  CommitUnknownError,
  isConnectionFatal,
} from '../../../src/storage/db/database-error.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { HalfOpenProxy } from '../../support/half-open-proxy.ts';
import { within } from '../../run/machine-speed.ts';
import { holdOpen, until } from '../fixture.ts';

let database: TestDatabase;
let proxy: HalfOpenProxy;
let throughProxy: ConnectionTarget;
const opened: Connection[] = [];

beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
  await database.query((sql) => sql`create table note (text text not null)`);
});
afterAll(() => database.drop());
beforeEach(async () => {
  proxy = await HalfOpenProxy.start(database.target);
  throughProxy = { ...database.target, ...proxy.address };
});
afterEach(async () => {
  for (const connection of opened.splice(0)) connection.close();
  await proxy.stop();
  await until(database, async (sql) => (await sessions(sql)) === 0);
  await database.query((sql) => sql`truncate note`);
});

function open(target: ConnectionTarget, events: ConstructorParameters<typeof Connection>[2] = {}): Connection {
  const connection = new Connection(target, 'tested', events);
  opened.push(connection);
  return connection;
}

async function sessions(sql: Sql): Promise<number> {
  const rows = await sql`
    select from pg_stat_activity where datname = current_database() and application_name = 'klatch tested'`;
  return rows.length;
}

const pid = async (sql: Sql): Promise<number> => (await sql`select pg_backend_pid() as pid`)[0]!['pid'] as number;
const notes = (): Promise<number> => database.query(async (sql) => (await sql`select from note`).length);

/** Fails the test when `work` takes too long: the statement would sleep in PostgreSQL for much longer. */
async function endsWithin<T>(ms: number, work: Promise<T>): Promise<T> {
  const started = performance.now();
  try {
    return await work;
  } finally {
    expect(performance.now() - started).toBeLessThan(within(ms));
  }
}

describe('the deadline of a call', () => {
  test('ends a query that does not answer, and the next call works at once on a new session', async () => {
    const connection = open(database.target);
    const first = await connection.run(pid, 5_000);
    const slow = connection.run((sql) => sql`select pg_sleep(30)`, 200);
    await endsWithin(15_000, expect(slow).rejects.toThrow(CommitUnknownError));
    expect(connection.ready).toBe(false);
    expect(await endsWithin(15_000, connection.run(pid, 20_000))).not.toBe(first);
    await database.query((sql) => sql`select pg_terminate_backend(${first}::int)`);
  });

  test('ends a query behind a path that swallows packets, with a reset that leaves nothing to be sent later', async () => {
    const connection = open(throughProxy);
    await connection.run(pid, 5_000);
    proxy.mode = 'swallow';
    const insert = connection.run((sql) => sql`insert into note values ('late')`, 200);
    await endsWithin(15_000, expect(insert).rejects.toThrow(CommitUnknownError));
    proxy.mode = 'pass';
    expect(await connection.run((sql) => sql`select 1 as one`, 5_000)).toEqual([{ one: 1 }]);
    expect(proxy.ends).toEqual({ closed: 0, reset: 1 });
    expect(proxy.accepted).toBe(2);
    expect(await notes()).toBe(0);
  });

  test('that passes before anything was sent says so, and does not disturb the next session', async () => {
    const connection = open({ ...throughProxy, connectTimeoutMs: 3_000 });
    proxy.mode = 'swallow';
    const insert = connection.run((sql) => sql`insert into note values ('never')`, 100);
    await endsWithin(15_000, expect(insert).rejects.toThrow(DatabaseUnavailableError));
    proxy.mode = 'pass';
    // The end of the first connection arrives while this statement runs.
    const next = connection.run((sql) => sql`select pg_sleep(3.2), 1 as one`, 20_000);
    expect(await next).toMatchObject([{ one: 1 }]);
    expect(await notes()).toBe(0);
  });

  test('ends a transaction, which is rolled back', async () => {
    const connection = open(database.target);
    // This call connects the session, so that the deadline of the next call includes no time for that.
    await connection.run(pid, 20_000);
    const transaction = connection.run(
      (sql) =>
        sql.begin(async (tx) => {
          await tx`insert into note values ('in a transaction')`;
          await tx`select pg_sleep(1)`.catch(() => {});
          await tx`insert into note values ('after the deadline')`;
        }),
      200,
    );
    await expect(transaction).rejects.toThrow(CommitUnknownError);
    await until(database, async (sql) => (await sessions(sql)) === 0);
    expect(await notes()).toBe(0);
  });
});

describe('a failure to connect', () => {
  test('is DatabaseAwayError when nobody listens', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    const connection = open({ ...throughProxy, port });
    await expect(connection.run(pid, 5_000)).rejects.toThrow(DatabaseUnavailableError);
    const missing = open({ ...database.target, host: '/nonexistent' });
    await expect(missing.run(pid, 5_000)).rejects.toThrow(DatabaseUnavailableError);
  });

  test.each(['reset', 'close'] as const)('is DatabaseAwayError on a %s before the first query', async (mode) => {
    const connection = open(throughProxy);
    proxy.mode = mode;
    await expect(connection.run(pid, 5_000)).rejects.toThrow(DatabaseUnavailableError);
    proxy.mode = 'pass';
    await connection.run(pid, 5_000);
    // Each of the two calls made one connection: the library did not connect again for the first one.
    expect(proxy.accepted).toBe(2);
    expect(proxy.connections).toBe(1);
  });

  test('is DatabaseAwayError after the time-out of connecting when the server does not greet', async () => {
    const connection = open({ ...throughProxy, connectTimeoutMs: 200 });
    proxy.mode = 'swallow';
    await endsWithin(15_000, expect(connection.run(pid, 20_000)).rejects.toThrow(DatabaseUnavailableError));
  });

  test('is DatabaseAwayError when the database refuses us', async () => {
    const connection = open({ ...database.target, database: 'no_such_database' });
    await expect(connection.run(pid, 5_000)).rejects.toThrow(/no_such_database/);
    await expect(connection.run(pid, 5_000)).rejects.toThrow(DatabaseUnavailableError);
  });
});

describe('a session that ends', () => {
  test('during a query is DatabaseLostError, is told to the owner, and is replaced by the next call', async () => {
    let closed = 0;
    const connection = open(database.target, { onClose: () => (closed += 1) });
    const first = await connection.run(pid, 5_000);
    const slow = connection.run((sql) => sql`select pg_sleep(30)`, 10_000);
    await database.query(async (sql) => {
      while ((await sql`select from pg_stat_activity where pid = ${first} and wait_event = 'PgSleep'`).length === 0);
      await sql`select pg_terminate_backend(${first})`;
    });
    await expect(slow).rejects.toThrow(CommitUnknownError);
    expect(closed).toBe(1);
    expect(await connection.run(pid, 5_000)).not.toBe(first);
  });

  test('in the middle of a transaction is lost for that transaction only, and for the process never', async () => {
    // The library rolls back on the session that it has just lost. Sometimes that raised an unhandled exception, hence
    // 20 attempts.
    for (let n = 0; n < 20; n += 1) {
      const connection = open(database.target);
      const working = Promise.withResolvers<number>();
      const transaction = connection.run(
        (sql) =>
          sql.begin(async (tx) => {
            const [row] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`;
            working.resolve(row!.pid);
            await tx`select pg_sleep(30)`;
          }),
        20_000,
      );
      const ended = transaction.catch((error: unknown) => error);
      const lost = await working.promise;
      await database.query((sql) => sql`select pg_terminate_backend(${lost}::int)`);
      expect(await ended).toBeInstanceOf(CommitUnknownError);
      expect(await connection.run(pid, 20_000)).not.toBe(lost);
      connection.close();
    }
  });

  test('while it is idle is replaced without its next caller noticing', async () => {
    const closed = Promise.withResolvers<void>();
    const connection = open(database.target, { onClose: () => closed.resolve() });
    const first = await connection.run(pid, 5_000);
    await database.query((sql) => sql`select pg_terminate_backend(${first})`);
    await closed.promise;
    expect(await connection.run(pid, 5_000)).not.toBe(first);
  });

  test.each([
    ['57P01', 'FATAL', true],
    ['57P03', 'ERROR', true],
    ['08006', 'ERROR', true],
    ['53100', 'PANIC', true],
    ['53100', 'ERROR', false],
    ['57014', 'ERROR', false],
  ])('is what SQLSTATE %s as %s means: %s', (code, severity, ends) => {
    const fields = { code, severity, message: 'made for a test' };
    const error = new (postgres.PostgresError as unknown as new (x: typeof fields) => Error)(fields);
    expect(isConnectionFatal(error)).toBe(ends);
  });
});

describe('close()', () => {
  test('in the turn of the first call opens nothing', async () => {
    const connection = open(throughProxy);
    const call = connection.run(pid, 5_000);
    connection.close();
    await expect(call).rejects.toThrow(DatabaseUnavailableError);
    await connection.run(pid, 5_000);
    expect(proxy.accepted).toBe(1);
  });

  test('rejects what is under way, and leaves no socket and no timer behind', async () => {
    const held = (): string[] =>
      process
        .getActiveResourcesInfo()
        .filter((kind) => /^(Timeout|PipeWrap|TCPSocketWrap|PipeConnect|TCPConnect)/.test(kind))
        .sort();
    const before = held();
    const connection = open(database.target);
    await connection.run(pid, 5_000);
    const slow = connection.run((sql) => sql`select pg_sleep(1)`, 10_000);
    connection.close();
    connection.close();
    await expect(slow).rejects.toThrow(CommitUnknownError);
    await new Promise(setImmediate);
    expect(held()).toEqual(before);
  });
});

describe('a session', () => {
  test('is read committed with our time-outs, whatever the database says', async () => {
    await database.query(async (sql) => {
      const [row] = await sql`select current_database() as name`;
      const settings = [
        "default_transaction_isolation = 'repeatable read'",
        'lock_timeout = 0',
        "timezone = 'Asia/Tokyo'",
      ];
      for (const setting of settings) await sql.unsafe(`alter database ${row!['name']} set ${setting}`);
    });
    const connection = open({ ...database.target, lockTimeoutMs: 123 });
    const ask = (sql: Sql) => sql`
      select current_setting('transaction_isolation') as isolation, current_setting('lock_timeout') as lock,
        current_setting('timezone') as zone`;
    expect(await connection.run(ask, 5_000)).toEqual([{ isolation: 'read committed', lock: '123ms', zone: 'UTC' }]);
    const begun = connection.run((sql) => sql.begin((tx) => ask(tx as unknown as Sql)), 5_000);
    expect(await begun).toMatchObject([{ isolation: 'read committed' }]);
  });

  test('gives up waiting for a lock after its time-out and stays usable', async () => {
    const connection = open({ ...database.target, lockTimeoutMs: 50 });
    const lock = await holdOpen(database.target, (tx) => tx`lock table note in access exclusive mode`);
    await expect(connection.run((sql) => sql`select from note`, 5_000)).rejects.toMatchObject({ code: '55P03' });
    expect(connection.ready).toBe(true);
    await lock.release();
  });

  test('is not ended by its age between two queries of one call', async () => {
    // The library itself would also read options from environment variables such as this one.
    process.env['PGMAX_LIFETIME'] = '0.05';
    try {
      const connection = open(database.target);
      const first = await connection.run(pid, 5_000);
      await connection.run((sql) => sql`select pg_sleep(0.1)`, 5_000);
      expect(await connection.run(pid, 5_000)).toBe(first);
    } finally {
      delete process.env['PGMAX_LIFETIME'];
    }
  });

  test('reads a bigint as a number, refuses one beyond 2^53, and stays usable', async () => {
    const connection = open(database.target);
    expect(await connection.run((sql) => sql`select 9007199254740991 as n`, 5_000)).toEqual([
      { n: Number.MAX_SAFE_INTEGER },
    ]);
    await expect(connection.run((sql) => sql`select 9007199254740993 as n`, 5_000)).rejects.toThrow(RangeError);
    expect(await connection.run((sql) => sql`select 1 as one`, 5_000)).toEqual([{ one: 1 }]);
  });
});
