import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Config } from '../../src/config/config.ts';
import type { S3Config } from '../../src/config/services.ts';
import { checkFileStore } from '../../src/doctor/files.ts';
import { LocalStore } from '../../src/files/local-store.ts';
import { S3Server } from '../files/s3-server.ts';
import { testServer } from '../support/database.ts';
import { testConfig } from '../support/config.ts';

let parent: string;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'klatch-doctor-'));
});

afterEach(() => rm(parent, { recursive: true, force: true }));

/** Runs `checkFileStore`. By default the database does not answer; `storeId` is the store id in it. */
const check = (config: Config, runningServerUid: number | null, storeId?: string | null) =>
  checkFileStore(config, { runningServerUid, storeIdInDatabase: storeId });

const withFiles = (localFilesFolder: string, s3: S3Config | null = null): Config =>
  testConfig(testServer('unused'), parent, { files: { localFilesFolder, s3 } });

describe('doctor looks at where files are kept', () => {
  test('a folder that can be written, or made, is well, and nothing is made', async () => {
    const localFilesFolder = join(parent, 'files');
    expect(await check(withFiles(localFilesFolder), null)).toMatchObject({ level: 'ok' });
    expect(await readdir(parent)).toEqual([]);
    await mkdir(localFilesFolder);
    expect(await check(withFiles(localFilesFolder), process.getuid!())).toMatchObject({ level: 'ok' });
    expect(await readdir(localFilesFolder)).toEqual([]);
  });

  test('a folder below the data directory is well before the first start, which makes that', async () => {
    const dataDir = join(parent, 'above', 'data');
    const at = (localFilesFolder: string) =>
      check(testConfig(testServer('unused'), dataDir, { files: { localFilesFolder, s3: null } }), null);
    for (const localFilesFolder of [join(dataDir, 'files'), dataDir, join(parent, 'above', 'files')]) {
      expect(await at(localFilesFolder)).toMatchObject({
        level: 'ok',
        found: `${localFilesFolder} is not there yet: the server makes it`,
      });
    }
    // The first start of a server creates the data directory and this one folder in it, but no folder between them.
    expect(await at(join(dataDir, 'some', 'files'))).toMatchObject({ level: 'error' });
    expect(await at(join(parent, 'above', 'data-2', 'files'))).toMatchObject({ level: 'error' });
    expect(await readdir(parent)).toEqual([]);
  });

  test('a folder of somebody else, on a disk that is not mounted, or none at all is an error', async () => {
    const localFilesFolder = join(parent, 'files');
    await mkdir(localFilesFolder);
    const foreign = await check(withFiles(localFilesFolder), 54_321);
    expect(foreign).toMatchObject({ level: 'error', found: expect.stringMatching(/runs as uid 54321$/) });
    const away = await check(withFiles(join(parent, 'not', 'mounted')), null);
    expect(away).toMatchObject({ level: 'error', found: expect.stringMatching(/neither is the folder above it$/) });
    await writeFile(join(parent, 'file'), '');
    expect(await check(withFiles(join(parent, 'file')), null)).toMatchObject({ level: 'error' });
  });

  test('a store of another database, or none where there was one, is an error that says what to do', async () => {
    const location = join(parent, 'files');
    const config = withFiles(location);
    const [ours, theirs] = ['a'.repeat(32), 'b'.repeat(32)];
    const missing = { level: 'error', found: expect.stringMatching(/its store-id is missing.*"klatch files adopt"/) };
    expect(await check(config, null, ours)).toMatchObject(missing);
    expect(await check(config, null, 'unassigned')).toMatchObject({ level: 'ok' });
    await new LocalStore(location).writeStoreId(ours);
    expect(await check(config, null, ours)).toMatchObject({ level: 'ok' });
    const foreign = await check(config, null, theirs);
    expect(foreign).toMatchObject({ level: 'error', found: expect.stringMatching(/begins with a{8}, .* with b{8}\./) });
    expect(await check(config, null, null)).toMatchObject({ found: expect.stringContaining('this database is new') });
  });

  test('a bucket answers, or says what is wrong by the key of the configuration', async () => {
    const server = await S3Server.start();
    try {
      expect(await check(withFiles(parent, server.config()), null)).toMatchObject({ level: 'ok' });
      const wrong = await check(withFiles(parent, server.config({ secretKey: 'hunter2' })), null);
      expect(wrong).toMatchObject({ level: 'error', found: expect.stringMatching(/services\.aws\.s3\.secret-key/) });
      expect(JSON.stringify(wrong)).not.toContain('hunter2');
    } finally {
      await server.stop();
    }
  });
});
