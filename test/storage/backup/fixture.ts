import { PassThrough, Readable } from 'node:stream';
import { Sealer } from '../../../src/storage/db/sealed.ts';
import type { ConnectionTarget } from '../../../src/storage/db/connection.ts';
import { loadDatabase, type Loaded } from '../../../src/storage/backup/load.ts';
import { readBackup } from '../../../src/storage/backup/read.ts';
import { writeBackup, type WriteOptions, type WrittenBackup } from '../../../src/storage/backup/write.ts';
import { SECRET } from '../../support/server-process.ts';

export const sealer = new Sealer(SECRET);

/** No files of a configuration. */
export const NO_CONFIGURATION = { record: { secrets: false, files: [], missing: [] }, contents: new Map() };

/** A backup in memory, and what it holds. */
export async function takeBackup(
  target: ConnectionTarget,
  options: Partial<WriteOptions> = {},
): Promise<{ bytes: Buffer; written: WrittenBackup }> {
  const output = new PassThrough();
  const chunks: Buffer[] = [];
  output.on('data', (chunk: Buffer) => chunks.push(chunk));
  const written = await writeBackup(target, output, {
    configuration: NO_CONFIGURATION,
    version: '0.0.0-test',
    ...options,
  });
  return { bytes: Buffer.concat(chunks), written };
}

/** Loads one from memory. */
export function loadBackup(target: ConnectionTarget, bytes: Buffer, secret = sealer): Promise<Loaded> {
  return loadDatabase(
    target,
    async (load) => {
      await readBackup(Readable.from([bytes]), {
        header: (header) => load.begin(header),
        rows: (table, content) => load.rows(table, content),
      });
    },
    { sealer: secret },
  );
}
