import { createHash } from 'node:crypto';
import { PassThrough, Readable } from 'node:stream';
import { gunzipSync, gzipSync } from 'node:zlib';
import { Sealer } from '../../../src/storage/db/sealed.ts';
import type { ConnectionTarget } from '../../../src/storage/db/connection.ts';
import type { Migration } from '../../../src/storage/db/migration-files.ts';
import { HEADER_FILE_NAME, MANIFEST_FILE_NAME } from '../../../src/storage/backup/format.ts';
import type { BackupHeader, BackupManifest } from '../../../src/storage/backup/format.ts';
import { loadDatabase, type DatabaseLoadResult } from '../../../src/storage/backup/load.ts';
import { readBackup } from '../../../src/storage/backup/read.ts';
import { readTar, encodeTarEnd, encodeTarFile } from '../../../src/storage/backup/tar.ts';
import { writeBackup, type WriteOptions, type WrittenBackup } from '../../../src/storage/backup/write.ts';
import { SECRET } from '../../support/server-process.ts';

export const sealer = new Sealer(SECRET);

/** The part of a backup for a configuration without files. */
export const NO_CONFIGURATION = {
  record: { secrets: false, files: [], missing: [] },
  configurationFileContents: new Map(),
};

/** A backup in memory, with its contents. */
export async function takeBackup(
  target: ConnectionTarget,
  options: Partial<WriteOptions> = {},
): Promise<{ bytes: Buffer; written: WrittenBackup }> {
  const output = new PassThrough();
  const chunks: Buffer[] = [];
  output.on('data', (chunk: Buffer) => chunks.push(chunk));
  const written = await writeBackup(target, output, {
    configuration: NO_CONFIGURATION,
    klatchVersion: '0.0.0-test',
    ...options,
  });
  return { bytes: Buffer.concat(chunks), written };
}

/** Loads a backup from memory. */
export function loadBackup(
  target: ConnectionTarget,
  bytes: Buffer,
  secret = sealer,
  migrations?: readonly Migration[],
  newEpochAbove?: number,
): Promise<DatabaseLoadResult> {
  return loadDatabase(
    target,
    async (load) => {
      await readBackup(Readable.from([bytes]), {
        header: (header) => load.begin(header),
        rows: (table, content) => load.copyRows(table, content),
      });
    },
    {
      sealer: secret,
      ...(migrations === undefined ? {} : { migrations }),
      ...(newEpochAbove === undefined ? {} : { newEpochAbove }),
    },
  );
}

export interface BackupFile {
  readonly name: string;
  readonly content: Buffer;
}

export async function filesOf(bytes: Buffer): Promise<BackupFile[]> {
  const files: BackupFile[] = [];
  for await (const { name, content } of readTar(Readable.from([gunzipSync(bytes)]))) {
    const chunks: Buffer[] = [];
    for await (const chunk of content) chunks.push(chunk);
    files.push({ name, content: Buffer.concat(chunks) });
  }
  return files;
}

export function packFiles(files: readonly BackupFile[]): Buffer {
  return gzipSync(
    Buffer.concat([
      ...files.flatMap(({ name, content }) => encodeTarFile(name, [content], new Date(0))),
      encodeTarEnd(),
    ]),
  );
}

/** Returns the backup with another header, and with a manifest that matches it. */
export async function replaceHeader(bytes: Buffer, changes: Partial<BackupHeader>): Promise<Buffer> {
  const files = await filesOf(bytes);
  const read = (name: string): object =>
    JSON.parse(files.find((file) => file.name === name)!.content.toString()) as object;
  const header = Buffer.from(JSON.stringify({ ...read(HEADER_FILE_NAME), ...changes }));
  const manifest = read(MANIFEST_FILE_NAME) as BackupManifest;
  const part = {
    name: HEADER_FILE_NAME,
    bytes: header.length,
    sha256: createHash('sha256').update(header).digest('hex'),
  };
  const parts = manifest.parts.map((each) => (each.name === HEADER_FILE_NAME ? part : each));
  const replaced = new Map([
    [HEADER_FILE_NAME, header],
    [MANIFEST_FILE_NAME, Buffer.from(JSON.stringify({ ...manifest, parts }))],
  ]);
  return packFiles(files.map(({ name, content }) => ({ name, content: replaced.get(name) ?? content })));
}
