import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Connection, type ConnectionTarget, type Sql } from '../../../src/storage/db/connection.ts';
import { CommitUnknownError, DatabaseUnavailableError } from '../../../src/storage/db/database-error.ts';
import { Pool } from '../../../src/storage/db/pool.ts';
import { withReadOnlyTransaction } from '../../../src/storage/db/read-only.ts';
import { createTestDatabase } from '../../support/database.ts';
import { DatabaseProxy } from '../../support/database-proxy.ts';
import { PostgresCluster, type PostgresNode } from '../../support/postgres-cluster.ts';
import { freePort } from '../../support/ports.ts';

const opened: { close(): void }[] = [];
let cluster: PostgresCluster;
let primary: PostgresNode;
let standby: PostgresNode;

beforeAll(async () => {
  cluster = await PostgresCluster.start();
  [primary, standby] = cluster.nodes as [PostgresNode, PostgresNode];
});
afterAll(() => cluster.stop());
afterEach(() => {
  for (const each of opened.splice(0)) each.close();
});

function open(target: ConnectionTarget): Connection {
  const connection = new Connection(target, 'tested');
  opened.push(connection);
  return connection;
}

function openPool(target: ConnectionTarget, size: number): Pool {
  const pool = new Pool(target, { name: 'tested', maxConnections: size, maxWaitingCalls: 10, timeoutMs: 20_000 });
  opened.push({ close: () => pool.stop() });
  return pool;
}

const portOf = async (sql: Sql): Promise<number> =>
  (await sql<{ port: number }[]>`select current_setting('port')::int as port`)[0]!.port;
const pidOf = async (sql: Sql): Promise<number> =>
  (await sql<{ pid: number }[]>`select pg_backend_pid() as pid`)[0]!.pid;

/** The message of the error with which a call is refused. */
async function rejectionOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => new Error('it was not refused'),
    (refused: unknown) => refused,
  );
  expect(error).toBeInstanceOf(DatabaseUnavailableError);
  return (error as Error).message;
}

describe('of several servers', () => {
  test('the one that takes writes is found, wherever it stands in the list', async () => {
    const away = { host: '127.0.0.1', port: await freePort() };
    const { otherHosts = [], ...first } = cluster.target([standby, primary]);
    const connection = open({ ...first, otherHosts: [away, ...otherHosts] });
    expect(await connection.run(portOf, 20_000)).toBe(primary.port);
  });

  test('a standby alone is refused in words', async () => {
    const message = await rejectionOf(open(standby.target).run(portOf, 20_000));
    expect(message).toBe('cannot connect to the database: it is a standby, which takes no writes');
  });

  test('all that cannot be used are named with what they said, and with no password', async () => {
    const port = await freePort();
    const target = { ...cluster.target([standby]), password: 'hunter2', otherHosts: [{ host: 'localhost', port }] };
    const message = await rejectionOf(open(target).run(portOf, 20_000));
    expect(message).toContain('none of the 2 database servers can be used: ');
    expect(message).toContain(`127.0.0.1:${standby.port}: it is a standby, which takes no writes; `);
    expect(message).toContain(`localhost:${port}: `);
    expect(message).not.toContain('hunter2');
  });

  test('one that is silent costs one deadline, and the next call begins with another one', async () => {
    const extra = await PostgresCluster.start({ servers: 1 });
    const [silent] = extra.nodes as [PostgresNode];
    silent.pause();
    const target = { ...cluster.target([silent, primary]), connectTimeoutMs: 20_000 };
    const connection = open(target);
    await expect(connection.run(portOf, 500)).rejects.toThrow(DatabaseUnavailableError);
    expect(await connection.run(portOf, 20_000)).toBe(primary.port);
    silent.resume();
    await extra.stop();
  });

  test('a standby will do for those who only look', async () => {
    const found = await withReadOnlyTransaction(standby.target, 20_000, (tx) => portOf(tx as unknown as Sql));
    expect(found).toBe(standby.port);
    const better = await withReadOnlyTransaction(cluster.target([standby, primary]), 20_000, (tx) =>
      portOf(tx as unknown as Sql),
    );
    expect(better).toBe(primary.port);
  });
});

describe('a server that takes no writes any more', () => {
  afterEach(() => primary.configure({ default_transaction_read_only: 'off' }));

  test('ends a session with the answer by which it tells so, and is away until it does again', async () => {
    const connection = open(primary.target);
    await connection.run(portOf, 20_000);
    await primary.configure({ default_transaction_read_only: 'on' });
    // A session reads changed settings of the server before its next statement. The result of that statement still
    // counts.
    expect(await connection.run(portOf, 20_000)).toBe(primary.port);
    expect(connection.ready).toBe(false);
    const message = await rejectionOf(connection.run(portOf, 20_000));
    expect(message).toBe('cannot connect to the database: it is set to take no writes');
    await primary.configure({ default_transaction_read_only: 'off' });
    expect(await connection.run(portOf, 20_000)).toBe(primary.port);
  });

  test('refuses what is written as not written, which ends the session', async () => {
    const connection = open(primary.target);
    await connection.run(portOf, 20_000);
    const write = connection.run(async (sql) => {
      // PostgreSQL 13 and older do not report this setting to the client.
      await sql`set default_transaction_read_only = on`;
      await sql`delete from node`;
    }, 20_000);
    expect(await rejectionOf(write)).toBe('the database takes no writes any more');
    expect(connection.ready).toBe(false);
  });
});

describe('one lost session', () => {
  test('makes the idle ones be asked before they are used: those that answer stay', async () => {
    const pool = openPool(primary.target, 2);
    const pids = await Promise.all([pool.run(pidOf), pool.run(pidOf)]);
    const lost = pool.run((sql) => sql`select pg_terminate_backend(pg_backend_pid())`);
    await expect(lost).rejects.toThrow(CommitUnknownError);
    const next = await Promise.all([pool.run(pidOf), pool.run(pidOf)]);
    expect(next.filter((pid) => pids.includes(pid))).toHaveLength(1);
  });

  test('saves the next callers from waiting for the others, which nobody ends after a loss of power', async () => {
    const database = await createTestDatabase({ empty: true });
    const proxy = await DatabaseProxy.start(database.target);
    const pool = openPool({ ...database.target, ...proxy.address }, 3);
    const three = (work: (sql: Sql) => Promise<number>, timeoutMs?: number): Promise<PromiseSettledResult<number>[]> =>
      Promise.allSettled([1, 2, 3].map(() => pool.run(work, timeoutMs)));
    expect(await three(pidOf)).toMatchObject([
      { status: 'fulfilled' },
      { status: 'fulfilled' },
      { status: 'fulfilled' },
    ]);
    proxy.abandon();
    await expect(pool.run(pidOf, 300)).rejects.toThrow(CommitUnknownError);
    // Without the check for a primary, the calls of the two remaining sessions would end at the deadline, with an
    // unknown outcome.
    expect(await three(pidOf)).toMatchObject([
      { status: 'fulfilled' },
      { status: 'fulfilled' },
      { status: 'fulfilled' },
    ]);
    pool.stop();
    await proxy.stop();
    await database.drop();
  });
});
