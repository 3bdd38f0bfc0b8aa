import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';

const FILE_NAME = 'restored-epoch';

/**
 * The log epoch that the last restore with this data directory set; 0: there was no restore. The epoch is in a file:
 * the restored database may have been dropped, and a backup does not know of earlier restores from the same backup.
 */
export async function readRestoredEpoch(dataDir: string): Promise<number> {
  try {
    const text = (await readFile(join(dataDir, FILE_NAME), 'utf8')).trim();
    return /^\d{1,9}$/.test(text) ? Number(text) : 0;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}

/** Writes the epoch of a restore, so that the next restore takes a greater one, also within the same minute. */
export async function writeRestoredEpoch(dataDir: string, epoch: number): Promise<void> {
  const path = join(dataDir, FILE_NAME);
  const file = await open(`${path}.new`, 'w', 0o600);
  await file.writeFile(`${epoch}\n`);
  await file.sync();
  await file.close();
  await rename(`${path}.new`, path);
}
