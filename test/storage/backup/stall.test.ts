import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { loadDatabase } from '../../../src/storage/backup/load.ts';
import { PartialFile } from '../../../src/storage/backup/partial-file.ts';
import { readBackup } from '../../../src/storage/backup/read.ts';
import { writeBackup } from '../../../src/storage/backup/write.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { holdOpen, until } from '../fixture.ts';
import { describeSchema } from '../schema.ts';
import { NO_CONFIGURATION, sealer, takeBackup } from './fixture.ts';

const STALL_MS = 300;

let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabase();
  await database.query(
    (sql) => sql`
      insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
      select 1, n, n, 1, repeat(md5(n::text), 40), now() from generate_series(1, 20000) n`,
  );
});
afterEach(async () => database.drop());

const sessionsAreGone = (of: TestDatabase): Promise<void> =>
  until(of, async (sql) => {
    const rows = await sql`
      select from pg_stat_activity where datname = current_database()
        and application_name in ('klatch backup', 'klatch restore')`;
    return rows.length === 0;
  });

describe('a copy of which nothing moves any more', () => {
  test('because nobody takes the backup is given up, and its session ends', async () => {
    // This stream never answers, as a disk of a dead file server, or a program that hangs.
    const stuck = new Writable({ write: () => {} });
    const backup = writeBackup(database.target, stuck, {
      configuration: NO_CONFIGURATION,
      klatchVersion: '0',
      stallTimeoutMs: STALL_MS,
    });
    await expect(backup).rejects.toThrow('Nothing moved for too long');
    await sessionsAreGone(database);
  });

  test('because the database waits for somebody else is given up', async () => {
    const held = await holdOpen(database.target, (tx) => tx`lock table notice in access exclusive mode`);
    const output = new PassThrough();
    output.resume();
    const options = { configuration: NO_CONFIGURATION, klatchVersion: '0', stallTimeoutMs: STALL_MS };
    await expect(writeBackup(database.target, output, options)).rejects.toThrow('Nothing moved for too long');
    await held.release();
    await sessionsAreGone(database);
  });

  test('because nothing more comes to be loaded is given up, and the database stays empty', async () => {
    const { bytes } = await takeBackup(database.target);
    const empty = await createTestDatabase({ empty: true });
    const input = new PassThrough();
    input.write(bytes.subarray(0, bytes.length / 2));
    try {
      const loading = loadDatabase(
        empty.target,
        async (load) => {
          await readBackup(input, {
            header: (header) => load.begin(header),
            rows: (table, content) => load.copyRows(table, content),
          });
        },
        { sealer, stallTimeoutMs: STALL_MS },
      );
      await expect(loading).rejects.toThrow('Nothing moved for too long');
      await sessionsAreGone(empty);
      expect(await empty.query(describeSchema)).toBe('');
    } finally {
      input.destroy();
      await empty.drop();
    }
  });
});

describe('the file of a backup', () => {
  let folder: string;
  let path: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'klatch-partial-'));
    path = join(folder, 'backup');
  });
  afterEach(async () => rm(folder, { recursive: true, force: true }));

  const write = async (file: PartialFile, text: string): Promise<void> => {
    const stream = file.stream();
    await new Promise<void>((resolve) => stream.end(text, resolve));
  };

  test('has its name when it is finished, for its owner alone, and takes the place of a partial one', async () => {
    await writeFile(`${path}.partial`, 'of a killed one');
    const file = await PartialFile.create(path, { overwrite: false });
    await write(file, 'whole');
    expect(await readdir(folder)).toEqual(['backup.partial']);
    await file.finish();
    expect(await readdir(folder)).toEqual(['backup']);
    expect(await readFile(path, 'utf8')).toBe('whole');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  test('is not overwritten unless that is asked for, also where it turns up meanwhile', async () => {
    const file = await PartialFile.create(path, { overwrite: false });
    await writeFile(path, 'mine');
    await expect(file.finish()).rejects.toThrow('is there already');
    await file.discard();
    await expect(PartialFile.create(path, { overwrite: false })).rejects.toThrow('--force');
    expect(await readdir(folder)).toEqual(['backup']);
    const forced = await PartialFile.create(path, { overwrite: true });
    await forced.finish();
    expect(await readFile(path, 'utf8')).toBe('');
    await expect(PartialFile.create('/dev/null', { overwrite: true })).rejects.toThrow('give - instead');
  });

  test('on a disk that is full is removed, and the system’s sentence is told', async () => {
    const file = await PartialFile.create(path, { overwrite: false });
    const stream = file.stream();
    // The disk becomes full in the middle of the write.
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    const input = new PassThrough();
    const writing = pipeline(input, stream);
    input.write('half of it');
    input.destroy(full);
    await expect(writing).rejects.toBe(full);
    await file.discard();
    expect(await readdir(folder)).toEqual([]);
  });

  test('that two backups write at once is the later one’s, and the other gives up', async () => {
    const first = await PartialFile.create(path, { overwrite: false });
    const second = await PartialFile.create(path, { overwrite: false });
    await write(first, 'first');
    await write(second, 'second');
    await expect(first.finish()).rejects.toThrow('Another process writes');
    await first.discard();
    await second.finish();
    expect(await readFile(path, 'utf8')).toBe('second');
  });
});
