import { randomUUID } from 'node:crypto';
import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Who the process of this data directory is to the lease table. It outlives the process, so that the successor of a
 * killed one takes its leases over at once; the directory's lock lets one process at a time use it.
 */
export async function readOrCreateNodeId(dataDir: string): Promise<string> {
  const path = join(dataDir, 'node-id');
  try {
    const id = (await readFile(path, 'utf8')).trim();
    if (/^[0-9a-f-]{36}$/.test(id)) return id;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const id = randomUUID();
  const file = await open(`${path}.new`, 'w', 0o600);
  await file.writeFile(`${id}\n`);
  await file.sync();
  await file.close();
  await rename(`${path}.new`, path);
  return id;
}
