import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';

const FILE_NAME = 'restored-epoch';

/**
 * The epoch that the last restore with this data directory gave the log; 0 without one. The database that it filled may
 * have been dropped since: a backup knows nothing of what was restored from it before.
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

/** Notes the epoch of a restore, so that the next one takes a greater one, within the same minute too. */
export async function writeRestoredEpoch(dataDir: string, epoch: number): Promise<void> {
  const path = join(dataDir, FILE_NAME);
  const file = await open(`${path}.new`, 'w', 0o600);
  await file.writeFile(`${epoch}\n`);
  await file.sync();
  await file.close();
  await rename(`${path}.new`, path);
}
