import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Finding } from '../../../src/doctor/finding.ts';
import { describeSchema } from '../../storage/schema.ts';
import { replaceHeader, takeBackup } from '../../storage/backup/fixture.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { Workspace } from '../program.ts';

const FOUND =
  'the database has the migration 1 initial, so a development build of Klatch before 0.1.0 made it, and this Klatch ' +
  'cannot read it';
const REMEDY =
  'start with an empty database (drop this one and create it again; for the embedded PostgreSQL, stop Klatch and move ' +
  'the folder "postgresql" out of data-dir)';

let database: TestDatabase;
let workspace: Workspace;

beforeEach(async () => {
  database = await createTestDatabase();
  workspace = await Workspace.create();
  await workspace.configure(database.target);
});

afterEach(async () => {
  await workspace.remove();
  await database.drop();
});

describe('the database of a development build before 0.1.0', () => {
  let before: string;

  beforeEach(async () => {
    await database.query((sql) => sql`update schema_version set name = 'initial' where version = 1`);
    before = await database.query(describeSchema);
  });
  afterEach(async () => {
    expect(await database.query(describeSchema)).toBe(before);
  });

  test.each(['migrate', 'serve', 'backup'])('is refused by `klatch %s` in one sentence', async (command) => {
    const args = command === 'backup' ? [command, join(workspace.folder, 'klatch.tar.gz')] : [command];
    const refused = await workspace.run(args);
    expect(refused).toMatchObject({ code: 76, stderr: expect.stringContaining(`klatch: ${FOUND}: ${REMEDY}\n`) });
  });

  test('is an error for doctor, and in the way of a start for status, in the same words', async () => {
    const todo = `${REMEDY.replace('start', 'Start')}.`;
    const doctor = await workspace.run(['doctor', '--json']);
    const { findings } = JSON.parse(doctor.stdout) as { findings: Finding[] };
    expect(findings).toContainEqual({ check: 'database', level: 'error', found: FOUND, todo });
    await workspace.run(['serve']);
    const status = await workspace.run(['status']);
    expect(status.stdout).toContain(`with exit status 76: ${FOUND}: ${REMEDY}\n`);
    expect(status.stdout).toContain(`\nin the way of a start:\n  ${FOUND}\n  -> ${todo}\n`);
  });
});

describe('the backup of a development build before 0.1.0', () => {
  const SENTENCE =
    'This has the migration 1 initial, so a development build of Klatch before 0.1.0 made it, and this Klatch cannot load ' +
    'it: load it with that build, or start with an empty database.';
  let file: string;

  beforeEach(async () => {
    const { bytes } = await takeBackup(database.target);
    file = join(workspace.folder, 'klatch.tar.gz');
    await writeFile(file, await replaceHeader(bytes, { schema: 2, migrations: ['initial', 'delivery-control'] }));
  });

  test('is refused by restore before it changes anything', async () => {
    const empty = await createTestDatabase({ empty: true });
    try {
      await workspace.configure(empty.target);
      const refused = { code: 1, stdout: '', stderr: `klatch: ${SENTENCE}\n` };
      expect(await workspace.run(['restore', file])).toMatchObject(refused);
      expect(await empty.query(describeSchema)).toBe('');
    } finally {
      await empty.drop();
    }
  });

  test('is whole for `restore --check`, which says as well that it cannot be loaded', async () => {
    const checked = await workspace.run(['restore', '--check', file]);
    expect(checked).toMatchObject({ code: 0, stderr: '' });
    expect(checked.stdout).toMatch(/\nIt is whole\.\nThis has the migration 1 initial, /);
  });
});
