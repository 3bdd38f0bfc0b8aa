import { Readable } from 'node:stream';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { BackupError, HEADER_FILE_NAME, MANIFEST_FILE_NAME, PART_BYTES } from '../../../src/storage/backup/format.ts';
import { readBackup } from '../../../src/storage/backup/read.ts';
import { encodeTarEnd } from '../../../src/storage/backup/tar.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { filesOf, packFiles, takeBackup, type BackupFile } from './fixture.ts';

const ROW = Buffer.from('1\\t2\\n');

let database: TestDatabase;
let whole: Buffer;

beforeAll(async () => {
  database = await createTestDatabase();
  // These rows fill more than two parts of the backup.
  await database.query(
    (sql) => sql`
      insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
      select 1, n, n, 1, repeat(md5(n::text), 40), now() from generate_series(1, 8000) n`,
  );
  ({ bytes: whole } = await takeBackup(database.target));
});
afterAll(async () => database.drop());

const read = (bytes: Buffer, chunkBytes = 65_536) => {
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, index) =>
    bytes.subarray(index * chunkBytes, (index + 1) * chunkBytes),
  );
  return readBackup(Readable.from(chunks, { objectMode: false }), {});
};

/** Returns the backup with changed files, correctly packed. */
async function repacked(change: (files: BackupFile[]) => BackupFile[]): Promise<Buffer> {
  return packFiles(change(await filesOf(whole)));
}

const withHeader = (change: (header: Record<string, unknown>) => void): Promise<Buffer> =>
  repacked((files) =>
    files.map((file) => {
      if (file.name !== HEADER_FILE_NAME) return file;
      const header = JSON.parse(file.content.toString()) as Record<string, unknown>;
      change(header);
      return { ...file, content: Buffer.from(JSON.stringify(header)) };
    }),
  );

describe('a backup that is read', () => {
  test('is whole, in parts of a bounded size, in whatever pieces it comes', async () => {
    const { header, manifest } = await read(whole, 1_021);
    expect(manifest.rows['message']).toBe(8_000);
    const parts = manifest.parts.filter(({ name }) => name.startsWith('tables/message/'));
    expect(parts.length).toBeGreaterThan(2);
    for (const { bytes } of parts) expect(bytes).toBeLessThan(PART_BYTES + 128 * 1024);
    expect(header).toMatchObject({ format: 1, klatch: '0.0.0-test', left_out: expect.any(Array) });
    expect((await filesOf(whole)).map(({ name }) => name)).toEqual([
      ...manifest.parts.map(({ name }) => name),
      MANIFEST_FILE_NAME,
    ]);
  });

  test('that ends early is called truncated, wherever it ends', async () => {
    for (const share of [0, 0.001, 0.1, 0.5, 0.9, 0.999]) {
      await expect(read(whole.subarray(0, Math.floor(whole.length * share)))).rejects.toThrow(
        'This backup is truncated',
      );
    }
    await expect(read(whole.subarray(0, -1))).rejects.toThrow('This backup is truncated');
    const unfinished = gzipSync(gunzipSync(whole).subarray(0, 100_000));
    await expect(read(unfinished)).rejects.toThrow('This backup is truncated');
    await expect(read(await repacked((files) => files.slice(0, -1)))).rejects.toThrow('This backup is truncated');
  });

  test('in which a bit fell over is called altered or truncated, unless it holds what it held', async () => {
    const undamaged = await read(whole);
    let refused = 0;
    for (let at = 20; at < whole.length; at += Math.floor(whole.length / 37)) {
      const damaged = Buffer.from(whole);
      damaged[at]! ^= 0x10;
      const outcome = await read(damaged).catch((error: unknown) => error);
      if (outcome instanceof BackupError) {
        expect(outcome.message).toMatch(/^This (backup|is no backup)/);
        refused++;
      } else {
        // Some bits between the blocks of a gzip file have no meaning.
        expect(outcome).toEqual(undamaged);
      }
    }
    expect(refused).toBeGreaterThan(30);
  });

  test.each([
    [
      'a row that was changed',
      (files: { name: string; content: Buffer }[]) =>
        files.map((file) => {
          if (!file.name.endsWith('message/000002.copy')) return file;
          const content = Buffer.from(file.content);
          content[content.length - 5] = 0x41;
          return { ...file, content };
        }),
      'is not what was written: tables/message/000002.copy does not have its checksum',
    ],
    [
      'a part that is gone',
      (files: { name: string; content: Buffer }[]) => files.filter(({ name }) => !name.endsWith('000002.copy')),
      'has other parts than its manifest names',
    ],
    [
      'a stranger',
      (files: { name: string; content: Buffer }[]) => [
        files[0]!,
        { name: '../../etc/passwd', content: Buffer.from('x') },
        ...files.slice(1),
      ],
      'holds "../../etc/passwd", which does not belong into it',
    ],
    [
      'a table twice',
      (files: { name: string; content: Buffer }[]) => [
        ...files.slice(0, -1),
        files.find(({ name }) => name.startsWith('tables/message'))!,
        files.at(-1)!,
      ],
      'has other parts than its manifest names',
    ],
  ])('with %s is called altered', async (_, change, sentence) => {
    await expect(read(await repacked(change))).rejects.toThrow(`This backup ${sentence}`);
  });

  describe('with something behind its end is called altered:', () => {
    test('a file behind the manifest', async () => {
      const altered = await repacked((files) => [...files, { name: 'tables/message/000009.copy', content: ROW }]);
      await expect(read(altered)).rejects.toThrow('goes on behind its end');
    });

    test('bytes behind the end of the archive, as of a second one', async () => {
      const unpacked = gunzipSync(whole);
      for (const more of [ROW, unpacked]) {
        await expect(read(gzipSync(Buffer.concat([unpacked, more])))).rejects.toThrow('It was altered or damaged');
      }
      // tar and tape drives fill the last record with zeros.
      await read(gzipSync(Buffer.concat([unpacked, Buffer.alloc(9_216)])));
    });

    test('a second gzip file, or bytes that are none', async () => {
      for (const more of [gzipSync(ROW), whole, ROW]) {
        await expect(read(Buffer.concat([whole, more]))).rejects.toThrow('It was altered or damaged');
        // With reads of this size, the border between the backup and the added bytes is within one read.
        await expect(read(Buffer.concat([whole, more]), 4_099)).rejects.toThrow('It was altered or damaged');
      }
    });
  });

  test('of a newer format, or with names that could do harm in a statement, is refused', async () => {
    const newer = await withHeader((header) => (header['format'] = 2));
    await expect(read(newer)).rejects.toThrow('This backup has format 2, and this Klatch reads up to 1');
    const harmful = await withHeader((header) => {
      header['tables'] = [{ name: 'message; drop table account', columns: ['a'] }];
    });
    await expect(read(harmful)).rejects.toThrow('has a description that cannot be read');
  });

  test('that is something else is called that', async () => {
    for (const other of [
      gzipSync('hello'.repeat(1_000)),
      Buffer.from('plain text'.repeat(100)),
      gzipSync(encodeTarEnd()),
    ]) {
      await expect(read(other)).rejects.toThrow('This is no backup of Klatch');
    }
  });

  test('is handed out no further than its visitor wants it', async () => {
    const failure = new Error('enough');
    const reading = readBackup(Readable.from([whole]), {
      rows: async (_, content) => {
        await content.next();
        throw failure;
      },
    });
    await expect(reading).rejects.toBe(failure);
  });
});
