import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Connection } from '../../../src/storage/db/connection.ts';
import {
  SCHEMA_LOCK_KEY,
  BACKUP_SESSION_NAME,
  migrate,
  MigrationFailedError,
} from '../../../src/storage/db/migrate.ts';
import {
  newestSchemaVersion,
  orderMigrations,
  readMigrations,
  type Migration,
} from '../../../src/storage/db/migration-files.ts';
import { Pool } from '../../../src/storage/db/pool.ts';
import { checkSchemaReturningVersion, IncompatibleSchemaError } from '../../../src/storage/db/schema-compatibility.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { isWaiting, until } from '../fixture.ts';
import { describeSchema } from '../schema.ts';

const SCRIPT = fileURLToPath(new URL('../../support/migrating-node.ts', import.meta.url));
const SNAPSHOT = fileURLToPath(new URL('../schema.snapshot.txt', import.meta.url));

let database: TestDatabase;
const pools: Pool[] = [];

function open(): Pool {
  const pool = new Pool(database.target, { name: 'migrate', maxConnections: 1, maxWaitingCalls: 1, timeoutMs: 30_000 });
  pools.push(pool);
  return pool;
}

const step = (version: number, text: string): Migration => ({ version, name: `step-${version}`, sqlText: text });

describe('migrate()', () => {
  beforeEach(async () => {
    database = await createTestDatabase({ empty: true });
  });
  afterEach(async () => {
    for (const pool of pools.splice(0)) pool.stop();
    await database.drop();
  });

  test('makes the schema that is kept in schema.snapshot.txt', async () => {
    await migrate(open());
    const schema = await database.query(describeSchema);
    // After an intended change of the schema: run KLATCH_UPDATE_SCHEMA=1 make test, and read the difference.
    if (process.env['KLATCH_UPDATE_SCHEMA'] !== undefined) await writeFile(SNAPSHOT, schema);
    expect(schema).toBe(await readFile(SNAPSHOT, 'utf8'));
  });

  test('lets one of 20 that start at once do it, and the others wait', async () => {
    const applied = await Promise.all(Array.from({ length: 20 }, () => migrate(open())));
    const all = readMigrations().map(({ version, name }) => `${version} ${name}`);
    expect(applied.flat().sort()).toEqual(all.sort());
    expect(await database.query((sql) => checkSchemaReturningVersion(sql))).toBe(newestSchemaVersion());
    expect(await migrate(open())).toEqual([]);
  });

  test('lets one of several processes do it', async () => {
    const run = promisify(execFile);
    const target = JSON.stringify(database.target);
    const outputs = await Promise.all([1, 2, 3].map(() => run(process.execPath, [SCRIPT, target])));
    const applied = outputs.flatMap(({ stdout }) => JSON.parse(stdout) as string[]);
    expect(applied).toHaveLength(newestSchemaVersion());
    expect(await database.query(describeSchema)).toBe(await readFile(SNAPSHOT, 'utf8'));
  });

  test('applies what is new to a database, and only that', async () => {
    const pool = open();
    const first = step(1, 'create table one (a int)');
    const second = step(2, 'create table two (a int); insert into two values (1), (2)');
    expect(await migrate(pool, { migrations: [first] })).toEqual(['1 step-1']);
    expect(await migrate(pool, { migrations: [first, second] })).toEqual(['2 step-2']);
    const names = await database.query((sql) => sql`select version, name from schema_version order by version`);
    expect([...names]).toEqual([
      { version: 1, name: 'step-1' },
      { version: 2, name: 'step-2' },
    ]);
  });

  test('that fails leaves the database as it was, for the former program, and says so', async () => {
    const pool = open();
    const first = step(1, 'create table one (a int); insert into one values (1)');
    expect(await migrate(pool, { migrations: [first] })).toEqual(['1 step-1']);
    const before = await database.query(describeSchema);
    const second = step(2, 'create table two (a int); alter table one add column b int; delete from one');
    const broken = step(3, 'create table three (); select secret from nowhere; create table four ()');
    const failure = await migrate(pool, { migrations: [first, second, broken] }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(MigrationFailedError);
    expect((failure as Error).message).toBe(
      'the migration 3 step-3 failed (relation "nowhere" does not exist, SQLSTATE 42P01): nothing was changed, the ' +
        'database is at schema 1 as before: the former Klatch can be started again; put that right, or report it, and ' +
        'then start this one',
    );
    expect(await database.query(describeSchema)).toBe(before);
    expect([...(await database.query((sql) => sql`select a from one`))]).toEqual([{ a: 1 }]);
    // The program from before the upgrade still starts. The corrected new one continues after the migrations that are
    // done.
    expect(await migrate(pool, { migrations: [first] })).toEqual([]);
    const mended = [first, second, step(3, 'create table three ()')];
    expect(await migrate(pool, { migrations: mended })).toEqual(['2 step-2', '3 step-3']);
  });

  test('that fails at the first start makes nothing, and quotes no value', async () => {
    const broken = step(2, "create table two (a int); insert into two values ('hunter2'::text::int)");
    const failure = await migrate(open(), { migrations: [step(1, ''), broken] }).catch((error: unknown) => error);
    expect((failure as Error).message).toBe(
      'the migration 2 step-2 failed (SQLSTATE 22P02): nothing was made; put that right and start again',
    );
    expect(await database.query(describeSchema)).toBe('');
  });

  test('tells that it waits for a backup, and goes on when that has ended', async () => {
    const backup = new Connection(database.target, BACKUP_SESSION_NAME);
    const told = Promise.withResolvers<string>();
    const migrated = Promise.withResolvers<string[]>();
    try {
      await backup.run(async (sql) => {
        await sql.begin(async (tx) => {
          await tx`select pg_advisory_xact_lock_shared(${SCHEMA_LOCK_KEY})`;
          migrated.resolve(migrate(open(), { migrations: [step(1, '')], onWaiting: told.resolve }));
          expect(await told.promise).toContain('a backup of this database runs');
          await until(database, (asked) => isWaiting(asked, 'migrate'));
        });
      }, 20_000);
      expect(await migrated.promise).toEqual(['1 step-1']);
    } finally {
      backup.close();
    }
  });

  test.each([
    {
      of: 'a newer program',
      applied: ['step-1', 'step-2', 'of-the-future'],
      sentence:
        'the database is at schema 3 and this Klatch knows 2: start the newer Klatch again, or restore a backup made ' +
        'before the upgrade',
    },
    {
      of: 'a development build before 0.1.0',
      applied: ['initial', 'delivery-control', 'nodes', 'people', 'push-files', 'activation-budgets', 'departures'],
      sentence:
        'the database has the migration 1 initial, so a development build of Klatch before 0.1.0 made it, and this ' +
        'Klatch cannot read it: start with an empty database (drop this one and create it again; for the embedded ' +
        'PostgreSQL, stop Klatch and move the folder "postgresql" out of data-dir)',
    },
    {
      of: 'the first migration of such a build',
      applied: ['initial'],
      sentence: 'a development build of Klatch before 0.1.0 made it',
    },
    {
      of: 'another program',
      applied: ['step-1', 'step-b'],
      sentence:
        'the database has the migration 2 step-b where this Klatch has 2 step-2, so another program made it: name ' +
        'another database in server.conf, or use the program that made this one',
    },
  ])('refuses the database of $of, and leaves it as it is', async ({ applied, sentence }) => {
    const pool = open();
    await migrate(pool, { migrations: applied.map((name, index) => ({ version: index + 1, name, sqlText: '' })) });
    const before = await database.query(describeSchema);
    const ours = [step(1, 'create table one (a int)'), step(2, 'create table two (a int)')];
    const failure = await migrate(pool, { migrations: ours }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(IncompatibleSchemaError);
    expect((failure as Error).message).toContain(sentence);
    expect(await database.query(describeSchema)).toBe(before);
  });

  test('refuses a database that lacks a migration before its last one', async () => {
    const pool = open();
    const all = [step(1, ''), step(2, ''), step(3, '')];
    await migrate(pool, { migrations: all });
    await database.query((sql) => sql`delete from schema_version where version = 2`);
    await expect(migrate(pool, { migrations: all })).rejects.toThrow(
      'the database has the migration 3 step-3 where this Klatch has 2 step-2',
    );
  });
});

describe('the files of migrations', () => {
  test('are taken in the order of their numbers, however these are written', () => {
    const names = ['10-j.sql', '9-i.sql', ...Array.from({ length: 8 }, (_, i) => `00${i + 1}-x.sql`)];
    expect(orderMigrations(names).map(({ version }) => version)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  test.each([
    [['1-a.sql', '3-c.sql'], 'migration 2 is missing'],
    [['2-b.sql'], 'migration 1 is missing'],
    [['1-a.sql', '001-b.sql'], 'there is another migration 1'],
    [['1-a.sql', 'b.sql'], 'b.sql is not named <number>-<name>.sql'],
    [['1a.sql'], '1a.sql is not named <number>-<name>.sql'],
  ])('%j are refused: %s', (names, sentence) => {
    expect(() => orderMigrations(names)).toThrow(sentence);
  });
});
