import { mkdir, mkdtemp, rm, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { checkStorePage, type FileFinding } from '../../src/files/check-store.ts';
import { LocalStore } from '../../src/files/local-store.ts';
import type { FileStore } from '../../src/files/store.ts';
import type { AccountId } from '../../src/model/ids.ts';
import { deleteRowReleasingUsage, findFile, finishUpload } from '../../src/storage/files/files.ts';
import type { Pool } from '../../src/storage/db/pool.ts';
import { makeGroups, makeMembers } from '../storage/fixture.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { newKey, storeFile } from './store-fixture.ts';
import { StoredRows } from './stored-rows.ts';

let database: TestDatabase;
let pool: Pool;
let owner: AccountId;
let location: string;
let store: LocalStore;
let rows: StoredRows;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = database.open().general;
  const [group] = await makeGroups(database, 1);
  [owner] = (await makeMembers(database, group!, ['owner'])) as [AccountId];
});

afterAll(() => database.drop());

beforeEach(async () => {
  await database.query(async (sql) => {
    await sql`delete from file`;
    await sql`delete from file_usage`;
  });
  location = await mkdtemp(join(tmpdir(), 'klatch-check-'));
  store = new LocalStore(location);
  await store.checkUsable();
  rows = new StoredRows(pool, store, owner);
});

afterEach(() => rm(location, { recursive: true, force: true }));

/** Runs the whole check of the store, page by page. */
async function check(repair: boolean, of: FileStore = store): Promise<{ findings: FileFinding[]; looked: number[] }> {
  const findings: FileFinding[] = [];
  const looked = [0, 0];
  for (let after: string | null = null; ;) {
    const page = await checkStorePage({ pool, store: of }, { after, repair: repair ? 'all' : 'none' });
    findings.push(...page.findings);
    looked[0]! += page.files;
    looked[1]! += page.uploads;
    if (page.next === null) return { findings, looked };
    after = page.next;
  }
}

const stateOf = async (id: string): Promise<string | undefined> => (await pool.run((sql) => findFile(sql, id)))?.state;
const pathOf = (id: string): string => join(location, id.slice(0, 2), id);

describe('the check of files', () => {
  test('finds nothing where rows and files fit, uploads under way included', async () => {
    await rows.stored('one');
    await rows.stored('two');
    await rows.uploading('half');
    await rows.announced(10);
    expect(await check(true)).toEqual({ findings: [], looked: [2, 1] });
  });

  test('finds files without a row and removes them when it is to repair', async () => {
    const kept = await rows.stored('kept');
    const strays = [newKey(), newKey()];
    for (const key of strays) await storeFile(store, key, 'stray');
    const found = strays.map((file) => ({ problem: 'stray', file, bytes: 5, repaired: false }));
    const { findings } = await check(false);
    expect(findings).toHaveLength(2);
    expect(findings).toEqual(expect.arrayContaining(found));
    expect((await check(true)).findings.every(({ repaired }) => repaired)).toBe(true);
    expect((await store.list(null)).files.map(({ key }) => key)).toEqual([kept]);
    expect((await check(false)).findings).toEqual([]);
  });

  test('finds rows whose file is lost or of another length, marks them, and takes it back when it is there again', async () => {
    await rows.stored('kept');
    const [lost, short] = [await rows.stored('lost'), await rows.stored('short')];
    await unlink(pathOf(lost));
    await writeFile(pathOf(short), 'sho');
    const expected = [
      { problem: 'lost', file: lost, bytes: null, repaired: false },
      { problem: 'size', file: short, bytes: 3, repaired: false },
    ];
    const { findings } = await check(false);
    expect(findings).toHaveLength(2);
    expect(findings).toEqual(expect.arrayContaining(expected));
    expect(await stateOf(lost)).toBe('stored');
    await check(true);
    expect([await stateOf(lost), await stateOf(short)]).toEqual(['lost', 'lost']);
    expect((await check(false)).findings).toEqual([]);
    await writeFile(pathOf(lost), 'lost');
    expect((await check(true)).findings).toEqual([{ problem: 'again', file: lost, bytes: 4, repaired: true }]);
    expect(await stateOf(lost)).toBe('stored');
  });

  test('finds uploads without a row, and those of files that are complete', async () => {
    const stored = await rows.stored('kept');
    const stray = newKey();
    await writeFile(join(location, 'uploads', stray), 'half');
    await writeFile(join(location, 'uploads', stored), 'half');
    const { findings } = await check(true);
    expect(findings.map(({ problem }) => problem)).toEqual(['upload', 'upload']);
    expect(new Set(findings.map(({ file }) => file))).toEqual(new Set([stored, stray]));
    expect(await store.size(stored)).toBe(4);
    expect((await check(false)).findings).toEqual([]);
  });

  test('takes an upload that ends while it looks for none that was left', async () => {
    const [ended, removed] = [await rows.uploading('half'), await rows.uploading('gone')];
    const stray = newKey();
    await writeFile(join(location, 'uploads', stray), 'half');
    const list = store.listUploads.bind(store);
    jest.spyOn(store, 'listUploads').mockImplementationOnce(async (after) => {
      const page = await list(after);
      await store.finish(ended, { receivedBytes: 4, state: {} });
      await pool.transaction((tx) => finishUpload(tx, ended, { size: 4, type: 'text/plain' }));
      await store.removeUploadAndFile(removed, null);
      await pool.transaction((tx) => deleteRowReleasingUsage(tx, removed));
      return page;
    });
    const { findings, looked } = await check(false);
    expect(looked[1]).toBe(3);
    expect(findings).toEqual([{ problem: 'upload', file: stray, bytes: 4, repaired: false }]);
  });

  test('finds counts that are wrong', async () => {
    await rows.stored('12345');
    await database.query((sql) => sql`update file_usage set bytes = 99`);
    const wrong = { problem: 'usage', file: null, bytes: null };
    expect((await check(false)).findings).toEqual([1, 2].map(() => ({ ...wrong, repaired: false })));
    expect((await check(true)).findings).toEqual([1, 2].map(() => ({ ...wrong, repaired: true })));
    expect((await check(false)).findings).toEqual([]);
  });

  test('does not mark everything as lost where the store is empty, as one is that is not mounted', async () => {
    const id = await rows.stored('one');
    await rm(join(location, id.slice(0, 2)), { recursive: true });
    const page = await checkStorePage({ pool, store }, { after: null, repair: 'all' });
    expect(page.findings).toEqual([{ problem: 'lost', file: id, bytes: null, repaired: false }]);
    expect(page.hasSkippedMarkingLost).toBe(true);
    expect(await stateOf(id)).toBe('stored');
  });

  test('goes through more than a page of both in step', async () => {
    const keys = Array.from({ length: 2_500 }, newKey).sort();
    await database.query(
      (sql) => sql`
        insert into file (id, owner_id, name, type, size, received, state)
        select id, ${owner}, 'a', 'text/plain', 1, 1, 'stored' from unnest(${keys}::text[]) as id`,
    );
    // Every third file is in the store, together with as many unknown files.
    const there = keys.filter((_, index) => index % 3 === 0);
    const strays = Array.from({ length: 800 }, newKey);
    const folders = [...there, ...strays];
    await Promise.all(folders.map((key) => mkdir(join(location, key.slice(0, 2)), { recursive: true })));
    await Promise.all(folders.map((key) => writeFile(pathOf(key), 'x')));
    const { findings, looked } = await check(false);
    expect(looked[0]).toBe(there.length + strays.length);
    const of = (wanted: string): string[] =>
      findings.filter(({ problem }) => problem === wanted).map(({ file }) => String(file));
    expect(of('stray').sort()).toEqual([...strays].sort());
    expect(of('lost').sort()).toEqual(keys.filter((key) => !there.includes(key)));
  });
});
