import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { newestSchemaVersion } from '../../../src/storage/db/migration-files.ts';
import { checkSchemaReturningVersion } from '../../../src/storage/db/schema-compatibility.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { Workspace } from '../program.ts';

let database: TestDatabase;
let workspace: Workspace;

beforeEach(async () => {
  database = await createTestDatabase({ empty: true });
  workspace = await Workspace.create();
  await workspace.configure(database.target);
});

afterEach(async () => {
  await workspace.remove();
  await database.drop();
});

describe('klatch migrate', () => {
  test('makes the schema in an empty database, says what it applied, and has nothing to do the next time', async () => {
    const version = newestSchemaVersion();
    const first = await workspace.run(['migrate', '--json']);
    expect(first.code).toBe(0);
    expect(JSON.parse(first.stdout)).toMatchObject({ version, applied: { length: version, 0: '1 schema' } });
    expect(await database.query((sql) => checkSchemaReturningVersion(sql))).toBe(version);
    const second = await workspace.run(['migrate']);
    expect(second).toMatchObject({ code: 0, stdout: `Nothing to do: the database is at schema ${version}.\n` });
  });

  test('refuses a database of a newer Klatch with 76', async () => {
    await workspace.run(['migrate']);
    await database.query((sql) => sql`insert into schema_version (version, name) values (9999, 'future')`);
    expect(await workspace.run(['migrate'])).toMatchObject({ code: 76, stdout: '' });
  });
});
