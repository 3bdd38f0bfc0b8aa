import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { Workspace } from '../program.ts';

let source: Workspace;
let target: Workspace;
let file: string;
const databases: TestDatabase[] = [];

beforeEach(async () => {
  source = await Workspace.create();
  target = await Workspace.create();
  file = join(source.folder, 'klatch.tar.gz');
  await source.configure((await newDatabase()).target);
  expect(await source.run(['migrate'])).toMatchObject({ code: 0 });
  expect(await source.run(['backup', file])).toMatchObject({ code: 0 });
});
afterEach(async () => {
  await source.remove();
  await target.remove();
  for (const database of databases.splice(0)) await database.drop();
});

async function newDatabase(options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const database = await createTestDatabase(options);
  databases.push(database);
  return database;
}

/** Restores the backup into another database. Resolves with the current and the previous epoch of its log. */
async function restore(): Promise<{ epoch: number; previous: number }> {
  const database = await newDatabase({ empty: true });
  await target.configure(database.target);
  expect(await target.run(['restore', file])).toMatchObject({ code: 0, stderr: '' });
  const rows = await database.query((sql) => sql`select name, value from setting where name like '%log_epoch'`);
  const values = new Map(rows.map(({ name, value }) => [name as string, Number(value)]));
  return { epoch: values.get('log_epoch')!, previous: values.get('previous_log_epoch')! };
}

test('two restores of one backup never share an epoch, nor do those within a minute', async () => {
  const minuteBefore = Math.floor(Date.now() / 60_000);
  const epochs = [(await restore()).epoch, (await restore()).epoch, (await restore()).epoch];
  expect(new Set(epochs).size).toBe(3);
  expect(epochs).toEqual(epochs.toSorted((a, b) => a - b));
  expect(epochs[0]).toBeGreaterThanOrEqual(minuteBefore);
  expect(await readFile(join(target.dataDir, 'restored-epoch'), 'utf8')).toBe(`${epochs[2]}\n`);
  expect(await restore()).toMatchObject({ previous: 0 });
});

test('a note of the last epoch that cannot be understood is no obstacle', async () => {
  await restore();
  await writeFile(join(target.dataDir, 'restored-epoch'), 'half a num');
  expect((await restore()).epoch).toBeGreaterThan(0);
});
