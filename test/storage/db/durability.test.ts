import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { silentLog } from '../../../src/log.ts';
import { Connection } from '../../../src/storage/db/connection.ts';
import { openDatabase } from '../../../src/storage/open-database.ts';
import { DatabaseUnsafeError } from '../../../src/storage/db/server-version.ts';
import { testConfig } from '../../support/config.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => database.drop());

/** The `synchronous_commit` that a session of Klatch uses. */
async function commitsOf(options: { forceGenericPlans?: boolean } = {}): Promise<string> {
  const connection = new Connection(database.target, 'settle', options);
  try {
    return await connection.run(async (sql) => {
      const [row] = await sql<{ value: string }[]>`select current_setting('synchronous_commit') as value`;
      return row!.value;
    }, 20_000);
  } finally {
    connection.close();
  }
}

async function setDefault(value: string): Promise<void> {
  await database.query((sql) =>
    sql.unsafe(`alter database ${database.target.database} set synchronous_commit = ${value}`),
  );
}

describe('a session', () => {
  test.each([
    ['off', 'on'],
    ['local', 'on'],
    ['on', 'on'],
    ['remote_write', 'remote_write'],
    ['remote_apply', 'remote_apply'],
  ])('on a database that says synchronous_commit = %s works with %s', async (value, expected) => {
    await setDefault(value);
    expect(await commitsOf()).toBe(expected);
    expect(await commitsOf({ forceGenericPlans: true })).toBe(expected);
  });

  test('keeps it when the default changes while it is open', async () => {
    await setDefault('on');
    const connection = new Connection(database.target, 'intake');
    try {
      // A reload of the configuration does not change a value that the session has set itself.
      const source = await connection.run(
        (sql) => sql`select source, setting from pg_settings where name = 'synchronous_commit'`,
        20_000,
      );
      expect(source[0]).toMatchObject({ source: 'session', setting: 'on' });
    } finally {
      connection.close();
    }
  });

  test('of each pool does', async () => {
    await setDefault('off');
    const opened = database.open();
    for (const pool of [opened.intake, opened.lease, opened.live, opened.search, opened.general]) {
      const [row] = await pool.run((sql) => sql`select current_setting('synchronous_commit') as value`);
      expect(row).toEqual({ value: 'on' });
    }
  });
});

test('only what can be derived again is committed without waiting for the disk', () => {
  const folder = join(import.meta.dirname, '../../../src/storage');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const relaxed = files.filter((name) =>
    /set_config\('synchronous_commit', 'off'|set (local )?synchronous_commit/.test(
      readFileSync(join(folder, name), 'utf8'),
    ),
  );
  // These files write only derived rows: words of searches, read positions, and rows of pushes.
  const derived = [
    'messages/indexing.ts',
    'messages/read-positions.ts',
    'push/push-claims.ts',
    'push/push-fan-out.ts',
    'push/push-settlement.ts',
  ];
  expect(relaxed.sort()).toEqual(derived);
});

describe('a start on a PostgreSQL with fsync = off', () => {
  const open = (unsafe: boolean): ReturnType<typeof openDatabase> => {
    const config = testConfig(database.target, '/nowhere', { postgresql: { allowFsyncOff: unsafe } });
    return openDatabase(config, { sealer: null, log: silentLog() });
  };

  test('is refused in a sentence that says what to do', async () => {
    // The database server of the tests runs with this setting.
    const [row] = await database.query((sql) => sql`select current_setting('fsync') as fsync`);
    expect(row).toEqual({ fsync: 'off' });
    const refused = open(false);
    await expect(refused).rejects.toThrow(DatabaseUnsafeError);
    await expect(refused).rejects.toThrow(/Set fsync = on in PostgreSQL, or services\.postgresql\.unsafe = true/);
  });

  test('is possible where the configuration accepts it', async () => {
    await (await open(true)).stop();
  });
});
