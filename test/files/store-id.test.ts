import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { adoptStore } from '../../src/files/adopt-store.ts';
import { LocalStore } from '../../src/files/local-store.ts';
import { S3Store } from '../../src/files/s3/s3-store.ts';
import { checkStoreId, StoreIdCheck, StoreMismatchError } from '../../src/files/store-id.ts';
import type { FileStore } from '../../src/files/store.ts';
import { silentLog } from '../../src/log.ts';
import { requireNoRunningServer } from '../../src/storage/rotate-secret.ts';
import type { Pool } from '../../src/storage/db/pool.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { TestServer } from '../support/server.ts';
import { download, tokenOf, upload } from './over-http.ts';
import { S3Server } from './s3-server.ts';
import { S3_TEST_BOUNDS } from './store-fixture.ts';

let database: TestDatabase;
let pool: Pool;
let servers: TestServer[];

beforeEach(async () => {
  database = await createTestDatabase();
  pool = database.open().general;
  servers = [];
});
afterEach(async () => {
  for (const server of servers) await server.stop();
  await database.drop();
});

const folderOf = (name: string): string => join(database.filesFolder, '..', `${database.target.database}-${name}`);

async function start(localFilesFolder: string): Promise<TestServer> {
  const server = await TestServer.start({ files: { localFilesFolder } }, { database });
  servers.push(server);
  return server;
}

async function assigned(of: TestDatabase = database): Promise<string | undefined> {
  const [row] = await of.query((sql) => sql<{ value: string }[]>`select value from setting where name = 'store_id'`);
  return row?.value;
}

const markOf = async (folder: string): Promise<string> => (await readFile(join(folder, 'store-id'), 'utf8')).trim();

describe('servers on one database', () => {
  test('share a folder, which the first start marks', async () => {
    const folder = folderOf('shared');
    try {
      const first = await start(folder);
      expect(await markOf(folder)).toMatch(/^[0-9a-f]{32}$/);
      expect(await markOf(folder)).toBe(await assigned());
      const second = await start(folder);
      const token = await tokenOf(first, 'anna');
      const { body } = await upload(first, { token, bytes: Buffer.from('on both') });
      expect(await download(second, { token, id: body.id as string })).toEqual(Buffer.from('on both'));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  test('with folders of their own are refused in a sentence that says what to do', async () => {
    const [ours, theirs] = [folderOf('a'), folderOf('b')];
    try {
      await start(ours);
      const id = await assigned();
      const refused = start(theirs);
      await expect(refused).rejects.toThrow(StoreMismatchError);
      await expect(refused).rejects.toThrow(/its store-id is missing.*services\.file-storage\.location/);
      await writeFile(join(theirs, 'store-id'), `${'c'.repeat(32)}\n`).catch(() => {});
      expect(await assigned()).toBe(id);
    } finally {
      for (const folder of [ours, theirs]) await rm(folder, { recursive: true, force: true });
    }
  });

  test('that start at once for the first time with folders of their own: one of them is refused', async () => {
    const folders = Array.from({ length: 4 }, (_, index) => folderOf(`at-once-${index}`));
    try {
      const outcomes = await Promise.allSettled(
        folders.map((folder) => checkStoreId({ pool, store: new LocalStore(folder) })),
      );
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(StoreMismatchError);
      }
    } finally {
      for (const folder of folders) await rm(folder, { recursive: true, force: true });
    }
  });

  test('that start at once for the first time with one folder all start', async () => {
    const stores = Array.from({ length: 4 }, () => new LocalStore(database.filesFolder));
    await Promise.all(stores.map((store) => checkStoreId({ pool, store })));
    expect(await markOf(database.filesFolder)).toBe(await assigned());
  });
});

describe('a folder', () => {
  test('of another database is refused by a new one, and by one that has a store', async () => {
    await checkStoreId({ pool, store: new LocalStore(database.filesFolder) });
    const other = await createTestDatabase();
    try {
      const store = new LocalStore(database.filesFolder);
      const compare = (): Promise<void> => checkStoreId({ pool: other.open().general, store });
      await expect(compare()).rejects.toThrow(/store-id begins with [0-9a-f]{8}, this database is new/);
      expect(await assigned(other)).toBeUndefined();
      await checkStoreId({ pool: other.open().general, store: new LocalStore(other.filesFolder) });
      await expect(compare()).rejects.toThrow(/begins with [0-9a-f]{8}, that of this database with [0-9a-f]{8}/);
    } finally {
      await other.drop();
    }
  });

  test('that was lost is refused, until `adopt` has marked what was in it as lost', async () => {
    const folder = database.filesFolder;
    const before = await start(folder);
    const token = await tokenOf(before, 'anna');
    const { body } = await upload(before, { token, bytes: Buffer.from('lost') });
    const store = new LocalStore(folder);
    // While a server runs, `adopt` could mark its new files as lost.
    await expect(adoptStore({ pool, store }, requireNoRunningServer)).rejects.toThrow(
      /uses this database. Stop it first/,
    );
    await servers.pop()!.stop();
    const id = await assigned();
    await rm(folder, { recursive: true });
    await expect(start(folder)).rejects.toThrow(/"klatch files adopt" marks them as lost/);
    expect(await adoptStore({ pool, store }, requireNoRunningServer)).toEqual({ files: 0, lost: 1, found: 0 });
    expect(await assigned()).toBe(id);
    expect(await markOf(folder)).toBe(id);
    const after = await start(folder);
    expect(await download(after, { token, id: body.id as string })).toBe(404);
    expect(await adoptedTwice(store)).toEqual({ files: 0, lost: 0, found: 0 });
  });

  const adoptedTwice = async (store: FileStore): Promise<object> => {
    await servers.pop()!.stop();
    return adoptStore({ pool, store }, requireNoRunningServer);
  };

  test('whose database was restored gets the id of the copy at the next start', async () => {
    const store = new LocalStore(database.filesFolder);
    await checkStoreId({ pool, store });
    const before = await assigned();
    await database.query((sql) => sql`update setting set value = 'unassigned' where name = 'store_id'`);
    await checkStoreId({ pool, store });
    expect(await assigned()).not.toBe(before);
    expect(await markOf(database.filesFolder)).toBe(await assigned());
  });
});

test('a bucket holds the id as a folder does', async () => {
  const bucket = await S3Server.start();
  const store = new S3Store(bucket.config(), { maxFileBytes: 1_000, bounds: S3_TEST_BOUNDS });
  try {
    expect(await store.readStoreId()).toBeNull();
    await checkStoreId({ pool, store });
    expect(await store.readStoreId()).toBe(await assigned());
    expect((await store.list(null)).files).toEqual([]);
    await store.writeStoreId('d'.repeat(32));
    await expect(checkStoreId({ pool, store })).rejects.toThrow(/the bucket .* begins with d{8}/);
  } finally {
    await store.stop();
    await bucket.stop();
  }
});

test('a store that is away at the start is compared once it answers', async () => {
  const bucket = await S3Server.start();
  const store = new S3Store(bucket.config(), { maxFileBytes: 1_000, bounds: S3_TEST_BOUNDS });
  const check = new StoreIdCheck({ pool, store, log: silentLog() });
  try {
    await store.writeStoreId('e'.repeat(32));
    bucket.interfere = (_, response) => {
      response.writeHead(503).end();
      return 'taken';
    };
    let late: Error | null = null;
    await check.start({ onMatch: () => {}, onMismatch: (error) => (late = error) });
    expect(late).toBeNull();
    bucket.interfere = () => undefined;
    await eventually(
      () => late,
      (error) => error instanceof StoreMismatchError,
    );
  } finally {
    check.stop();
    await store.stop();
    await bucket.stop();
  }
});
