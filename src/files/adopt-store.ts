import type { Transaction } from '../storage/db/connection.ts';
import { ensureStoreId, findStoreId, unassignNewStoreId, UNASSIGNED_STORE_ID } from '../storage/files/store-id.ts';
import { checkStorePage } from './check-store.ts';
import type { StoreIdDeps } from './store-id.ts';

/** Counts of files, from a comparison of the store with the database. */
export interface AdoptionCounts {
  readonly files: number;
  /** Files that this run marked as lost, since the store does not have them. */
  readonly lost: number;
  /** Files that were marked as lost, and are in the store again. */
  readonly found: number;
}

/**
 * Assigns a store to this database: marks rows whose files are missing as lost, and then writes the database's id to
 * the store. Removes nothing from the store. Repeating the call is safe. `requireNoServers` must reject while a server
 * is running: the new files of that server would look lost.
 */
export async function adoptStore(
  { pool, store }: StoreIdDeps,
  requireNoServers: (tx: Transaction) => Promise<void>,
): Promise<AdoptionCounts> {
  await pool.transaction(requireNoServers);
  await store.checkUsable();
  const counts = { files: 0, lost: 0, found: 0 };
  for (let pagePosition: string | null = null; ;) {
    const page = await checkStorePage({ pool, store }, { after: pagePosition, repair: 'rows' });
    // Only the pages of files are read. The later pages, of uploads, are for `klatch files check`.
    counts.files += page.files;
    const repaired = page.findings.filter((finding) => finding.repaired);
    counts.found += repaired.filter(({ problem }) => problem === 'again').length;
    counts.lost += repaired.filter(({ problem }) => problem !== 'again').length;
    if (page.next === null || page.isFilesPartDone) break;
    pagePosition = page.next;
  }
  await writeDatabaseIdToStore({ pool, store });
  return counts;
}

async function writeDatabaseIdToStore({ pool, store }: StoreIdDeps): Promise<void> {
  await pool.run((sql) => unassignNewStoreId(sql));
  const id = await pool.run(findStoreId);
  if (id === UNASSIGNED_STORE_ID) await ensureStoreId(pool, (assigned) => store.writeStoreId(assigned));
  else await store.writeStoreId(id!);
}
