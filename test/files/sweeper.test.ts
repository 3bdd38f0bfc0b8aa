import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { LocalStore } from '../../src/files/local-store.ts';
import { StoreUnavailableError } from '../../src/files/store.ts';
import { FileSweeper } from '../../src/files/sweeper.ts';
import type { Log } from '../../src/log.ts';
import type { AccountId } from '../../src/model/ids.ts';
import { readTotalUsage } from '../../src/storage/files/file-usage.ts';
import { findFile, markUnattachedFileRemoved } from '../../src/storage/files/files.ts';
import type { Pool } from '../../src/storage/db/pool.ts';
import { makeGroups, makeMembers, type StoredGroup } from '../storage/fixture.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { recordingLog } from '../support/recording-log.ts';
import { StoredRows } from './stored-rows.ts';

const DAY_MS = 86_400_000;

let database: TestDatabase;
let pool: Pool;
let group: StoredGroup;
let owner: AccountId;
let parent: string;
let location: string;
let store: LocalStore;
let rows: StoredRows;
let lines: string[];
let log: Log;
let sweeper: FileSweeper;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = database.open().general;
  [group] = (await makeGroups(database, 1)) as [StoredGroup];
  [owner] = (await makeMembers(database, group, ['owner'])) as [AccountId];
});

afterAll(() => database.drop());

beforeEach(async () => {
  await database.query(async (sql) => {
    await sql`delete from file`;
    await sql`delete from file_usage`;
  });
  parent = await mkdtemp(join(tmpdir(), 'klatch-sweep-'));
  location = join(parent, 'files');
  store = new LocalStore(location);
  await store.checkUsable();
  rows = new StoredRows(pool, store, owner);
  lines = [];
  log = recordingLog(lines);
  sweeper = new FileSweeper({ pool, store, nodeName: 'a', orphanRetentionMs: DAY_MS, log });
});

afterEach(() => rm(parent, { recursive: true, force: true }));

/** Makes the next sweep (removal of files) due, and runs it. */
async function sweep(): Promise<number | null> {
  await database.query((sql) => sql`update job_lock set expires_at = '-infinity' where name = 'files'`);
  return sweeper.sweep();
}

const age = (id: string): Promise<unknown> =>
  database.query((sql) => sql`update file set updated_at = now() - interval '25 hours' where id = ${id}`);
const isThere = async (id: string): Promise<boolean> => (await pool.run((sql) => findFile(sql, id))) !== null;

describe('the sweep', () => {
  test('takes what is given up out of the store, then forgets its row and what it took', async () => {
    const [removed, kept] = [await rows.stored('removed'), await rows.stored('kept')];
    await pool.run((sql) => markUnattachedFileRemoved(sql, removed));
    expect(await sweep()).toBe(1);
    expect([await store.size(removed), await store.size(kept)]).toEqual([null, 4]);
    expect([await isThere(removed), await isThere(kept)]).toEqual([false, true]);
    expect(await pool.run((sql) => readTotalUsage(sql))).toEqual({ bytes: 4, files: 1 });
  });

  test('takes what no message took in time, and uploads that did not go on, and nothing that a message has', async () => {
    const [loose, upload, attached] = [
      await rows.stored('loose'),
      await rows.uploading('half'),
      await rows.stored('attached'),
    ];
    await database.query((sql) => sql`update file set conversation_id = ${group.id}, seq = 1 where id = ${attached}`);
    expect(await sweep()).toBe(0);
    for (const id of [loose, upload, attached]) await age(id);
    expect(await sweep()).toBe(2);
    expect([await isThere(loose), await isThere(upload), await isThere(attached)]).toEqual([false, false, true]);
    expect((await store.list(null)).files.map(({ key }) => key)).toEqual([attached]);
    expect((await store.listUploads(null)).files).toEqual([]);
  });

  test('keeps the row while the store is away, says so once, and goes on when it is back', async () => {
    const id = await rows.stored('removed');
    await pool.run((sql) => markUnattachedFileRemoved(sql, id));
    await rename(location, join(parent, 'away'));
    expect(await sweep()).toBeNull();
    expect(await sweep()).toBeNull();
    expect(await isThere(id)).toBe(true);
    await rename(join(parent, 'away'), location);
    expect(await sweep()).toBe(1);
    expect(await isThere(id)).toBe(false);
    expect(await store.size(id)).toBeNull();
    expect(lines.filter((line) => line.includes('stay in the store'))).toHaveLength(1);
    expect(lines.filter((line) => line.includes('out of the store again'))).toHaveLength(1);
  });

  test('goes on behind files that cannot be removed, and comes back to them', async () => {
    const ids = await Promise.all(Array.from({ length: 12 }, (_, n) => rows.stored(`file ${n}`)));
    for (const id of ids) await pool.run((sql) => markUnattachedFileRemoved(sql, id));
    let bad = ids.slice(0, 9);
    const remove = store.remove.bind(store);
    store.remove = async (id) => {
      if (bad.includes(id)) throw new StoreUnavailableError('this one stays');
      await remove(id);
    };
    // The whole first batch fails: the store itself may be unreachable, so the sweep stops.
    expect(await sweep()).toBeNull();
    expect(await sweep()).toBe(3);
    expect(await Promise.all(ids.map(isThere))).toEqual(ids.map((id) => bad.includes(id)));
    expect(lines.filter((line) => line.includes('stay in the store'))).toHaveLength(1);
    bad = [];
    expect(await sweep()).toBe(9);
  });

  test('is made by one node at a time', async () => {
    const other = new FileSweeper({ pool, store, nodeName: 'b', orphanRetentionMs: DAY_MS, log });
    expect(await sweep()).toBe(0);
    expect(await other.sweep()).toBeNull();
  });

  test('ends with the server', async () => {
    sweeper.start();
    sweeper.start();
    await sweeper.stop();
    await sweeper.stop();
  });
});
