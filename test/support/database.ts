import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PostgresqlConfig } from '../../src/config/services.ts';
import { silentLog } from '../../src/log.ts';
import { Connection, type ConnectionTarget, type Sql } from '../../src/storage/db/connection.ts';
import { Database } from '../../src/storage/database.ts';
import { migrate } from '../../src/storage/db/migrate.ts';
import { Pool } from '../../src/storage/db/pool.ts';
import { postgresqlConfig } from './config.ts';
import { HANG_MS } from './eventually.ts';

/**
 * The key of the advisory lock that each process takes while it makes or copies the template database: PostgreSQL
 * refuses to copy a database that has a session.
 */
const TEMPLATE_LOCK = 7_001;
const TEMPLATE = 'klatch_template';

/** A database of the private PostgreSQL server that global-setup.ts started for this run of the tests. */
export function testServer(database: string): ConnectionTarget {
  const text = process.env['KLATCH_TEST_POSTGRES'];
  if (text === undefined) throw new Error('KLATCH_TEST_POSTGRES is not set: run the tests with `make test`');
  const { socketDir, port, user } = JSON.parse(text) as { socketDir: string; port: number; user: string };
  return { host: socketDir, port, user, database, password: '', connectTimeoutMs: 20_000, lockTimeoutMs: 1_000 };
}

export interface TestDatabase {
  readonly target: ConnectionTarget;
  /** The folder for the files that servers on this database store; `drop` removes it. */
  readonly filesFolder: string;
  /**
   * Opens connection pools on the database, with changes to time-outs, limits or the connection; `drop` closes them.
   */
  open(changes?: Partial<PostgresqlConfig>): Database;
  /** Runs statements as the superuser. */
  query<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
  drop(): Promise<void>;
}

async function asAdmin<T>(database: string, work: (sql: Sql) => Promise<T>): Promise<T> {
  const connection = new Connection({ ...testServer(database), lockTimeoutMs: 30_000 }, 'test');
  try {
    return await connection.run(work, HANG_MS);
  } finally {
    connection.close();
  }
}

async function makeTemplate(admin: Sql): Promise<void> {
  const [found] = await admin`select from pg_database where datname = ${TEMPLATE}`;
  if (found !== undefined) return;
  await admin.unsafe(`create database ${TEMPLATE}_new`);
  const pool = new Pool(testServer(`${TEMPLATE}_new`), {
    name: 'migrate',
    maxConnections: 1,
    maxWaitingCalls: 1,
    timeoutMs: HANG_MS,
  });
  await migrate(pool);
  pool.stop();
  // A session ends a moment after its socket. PostgreSQL waits up to 5 s for that before it refuses to rename the
  // database.
  await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${`${TEMPLATE}_new`}`;
  await admin.unsafe(`alter database ${TEMPLATE}_new rename to ${TEMPLATE}`);
}

/** Reads the sessions of this database that wait for an advisory lock. Tests of other workers use other databases. */
export function waitingForLock(sql: Sql): Promise<readonly object[]> {
  return sql`
    select from pg_locks
    where locktype = 'advisory' and not granted
      and database = (select oid from pg_database where datname = current_database())`;
}

/**
 * Reads the sessions of this database that wait for a lock, in a session of its own. Within one transaction,
 * pg_stat_activity would show the same sessions at each read.
 */
export function waitingSessions(of: TestDatabase): Promise<readonly object[]> {
  return of.query(
    (sql) => sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
}

/** Creates a database for one test: with the current schema, or empty. */
export async function createTestDatabase(options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const name = `t_${randomBytes(8).toString('hex')}`;
  await asAdmin('postgres', async (admin) => {
    await admin`set lock_timeout = 0`;
    await admin`select pg_advisory_lock(${TEMPLATE_LOCK})`;
    if (options.empty === true) {
      await admin.unsafe(`create database ${name}`);
    } else {
      await makeTemplate(admin);
      // The files are in memory: so this strategy takes half the CPU time of the default, which writes every page to
      // the WAL.
      await admin.unsafe(`create database ${name} template ${TEMPLATE} strategy file_copy`);
    }
  });
  const target = testServer(name);
  const filesFolder = join(tmpdir(), `klatch-files-${name}`);
  const opened: Database[] = [];
  return {
    target,
    filesFolder,
    open: (changes = {}) => {
      const database = new Database({ ...target, ...changes }, { ...postgresqlConfig, ...changes }, silentLog());
      opened.push(database);
      return database;
    },
    query: (work) => asAdmin(name, work),
    drop: async () => {
      await Promise.all(opened.map((database) => database.stop()));
      await asAdmin('postgres', async (admin) => {
        await admin.unsafe(`drop database ${name} with (force)`);
      });
      await rm(filesFolder, { recursive: true, force: true });
    },
  };
}
