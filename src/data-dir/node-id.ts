import { randomUUID } from 'node:crypto';
import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * The id of this data directory's process in the lease table. It outlives the process, so that the successor of a
 * killed process takes over its leases at once. The directory's lock lets only one process at a time use the id.
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
