import { correctUsageCounts } from '../storage/files/file-usage.ts';
import {
  markLostOrFound,
  listStoreCheckRows,
  findStoreCheckRows,
  type StoreCheckRow,
} from '../storage/files/file-check.ts';
import type { Pool } from '../storage/db/pool.ts';
import { runInBatches } from './run-in-batches.ts';
import type { FileStore, StoredObject } from './store.ts';

/**
 * A mismatch between store and database.
 * - `stray`: a file without a row.
 * - `lost`: a row without its file.
 * - `size`: a file whose length differs from its row.
 * - `again`: a file that was lost and exists again.
 * - `upload`: data of an upload that has ended.
 * - `usage`: wrong counts of used space.
 */
type FileProblem = 'stray' | 'lost' | 'size' | 'again' | 'upload' | 'usage';

export interface FileFinding {
  readonly problem: FileProblem;
  /** The file's key; null for the problem `usage`. */
  readonly file: string | null;
  /** The file's size in the store; null: the file does not exist in the store, or its size is not known. */
  readonly bytes: number | null;
  readonly repaired: boolean;
}

/** The findings of a page of the check. */
interface StoreCheckPage {
  readonly findings: readonly FileFinding[];
  /** The numbers of files and of uploads in the store that this page compared with the database. */
  readonly files: number;
  readonly uploads: number;
  /** The position of the next page; null: this was the last page. */
  readonly next: string | null;
  /**
   * True: missing files were not marked as lost, since the store has no files at all, which looks like a wrong store.
   */
  readonly hasSkippedMarkingLost: boolean;
  /** True: all files were compared, and the next page examines uploads. */
  readonly isFilesPartDone: boolean;
}

/**
 * What the check repairs:
 * - `rows`: only marks rows as lost or found; marks even all of them as lost if the store has no files.
 * - `all`: does the same, but marks nothing as lost if the store has no files. Also removes files without a row and
 *   data of ended uploads, and corrects counts.
 */
type Repair = 'none' | 'rows' | 'all';

interface StoreCheckDeps {
  readonly pool: Pool;
  readonly store: FileStore;
}

const PAGE_SIZE = 1_000;
/**
 * A page's position is one of these letters and a key. The page begins after that key, among the files or among the
 * uploads.
 */
const FILES_CURSOR_PREFIX = 'f';
const UPLOADS_CURSOR_PREFIX = 'u';

/** Thrown to roll back a transaction that corrected the counts only to find out which of them are wrong. */
class RollbackError extends Error {
  override readonly name = 'RollbackError';
}

/**
 * Compares a page of the store with the rows of the database. The server writes a row before the first byte of its
 * file, and deletes it after the file. This check lists the store first and reads the rows afterwards. So a listed file
 * without a row belongs neither to an account nor to an upload in progress.
 */
export async function checkStorePage(
  deps: StoreCheckDeps,
  { after, repair }: { after: string | null; repair: Repair },
): Promise<StoreCheckPage> {
  const position = after ?? FILES_CURSOR_PREFIX;
  if (position.startsWith(FILES_CURSOR_PREFIX)) return checkFilesAndRowsPage(deps, position.slice(1) || null, repair);
  return checkLeftoverUploadsAndUsage(deps, position.slice(1) || null, repair === 'all');
}

async function checkFilesAndRowsPage(
  deps: StoreCheckDeps,
  after: string | null,
  repair: Repair,
): Promise<StoreCheckPage> {
  const { pool, store } = deps;
  const listed = await store.list(after);
  const rows = await pool.run((sql) => listStoreCheckRows(sql, { after, limit: PAGE_SIZE }));
  const lastRow = rows.length < PAGE_SIZE ? null : rows.at(-1)!.id;
  // The page ends at the greatest key up to which both lists are complete: that of the store and that of the rows.
  const lastKeyOfPage = [listed.next, lastRow].filter((each) => each !== null).sort()[0] ?? null;
  const isWithinPage = (key: string): boolean => lastKeyOfPage === null || key <= lastKeyOfPage;
  const files = listed.files.filter(({ key }) => isWithinPage(key));
  const rowById = new Map(rows.filter(({ id }) => isWithinPage(id)).map((row) => [row.id, row]));
  const found: FileFinding[] = [];
  await runInBatches(files, async (file) => {
    const finding = await checkStoredFile(deps, file, { rowOfStoredFile: rowById.get(file.key), repair });
    if (finding !== null) found.push(finding);
    rowById.delete(file.key);
  });
  const rowsWithoutFile = [...rowById.values()].filter(({ state }) => state === 'stored');
  const isSuspectedEmpty =
    repair !== 'rows' && rowsWithoutFile.length > 0 && (await store.list(null)).files.length === 0;
  await runInBatches(rowsWithoutFile, async (row) => {
    const finding = await checkMissingFile(deps, row, repair !== 'none' && !isSuspectedEmpty);
    if (finding !== null) found.push(finding);
  });
  const next = lastKeyOfPage === null ? UPLOADS_CURSOR_PREFIX : `${FILES_CURSOR_PREFIX}${lastKeyOfPage}`;
  const hasSkippedMarkingLost = isSuspectedEmpty && repair !== 'none';
  return {
    findings: found,
    files: files.length,
    uploads: 0,
    next,
    hasSkippedMarkingLost,
    isFilesPartDone: lastKeyOfPage === null,
  };
}

/** Compares a file in the store's listing with its row. */
async function checkStoredFile(
  { pool, store }: StoreCheckDeps,
  { key: file, size: bytes }: StoredObject,
  { rowOfStoredFile, repair }: { rowOfStoredFile: StoreCheckRow | undefined; repair: Repair },
): Promise<FileFinding | null> {
  const isRepairing = repair !== 'none';
  const markLostOrFoundAgain = (isThere: boolean): Promise<boolean> =>
    pool.run((sql) => markLostOrFound(sql, file, isThere));
  if (rowOfStoredFile === undefined) {
    // If the file and then its row were deleted after the listing of the store, nothing is wrong.
    if ((await store.size(file)) === null || (await hasRow(pool, file))) return null;
    const isRemoving = repair === 'all';
    if (isRemoving) await store.remove(file);
    return { problem: 'stray', file, bytes, repaired: isRemoving };
  }
  if (rowOfStoredFile.state === 'lost' && rowOfStoredFile.size === bytes) {
    return { problem: 'again', file, bytes, repaired: isRepairing && (await markLostOrFoundAgain(true)) };
  }
  if (rowOfStoredFile.state !== 'stored' || rowOfStoredFile.size === bytes) return null;
  return { problem: 'size', file, bytes, repaired: isRepairing && (await markLostOrFoundAgain(false)) };
}

/**
 * Checks a row whose file was not in the store's listing. Reads both again: after the listing, the file may have
 * appeared, or the row may have been deleted.
 */
async function checkMissingFile(
  { pool, store }: StoreCheckDeps,
  row: StoreCheckRow,
  isRepairing: boolean,
): Promise<FileFinding | null> {
  if ((await store.size(row.id)) !== null) return null;
  const currentRow = (await pool.run((sql) => findStoreCheckRows(sql, [row.id]))).get(row.id);
  if (currentRow?.state !== 'stored') return null;
  const repaired = isRepairing && (await pool.run((sql) => markLostOrFound(sql, row.id, false)));
  return { problem: 'lost', file: row.id, bytes: null, repaired };
}

async function checkLeftoverUploadsAndUsage(
  deps: StoreCheckDeps,
  after: string | null,
  isRepairing: boolean,
): Promise<StoreCheckPage> {
  const { pool, store } = deps;
  const { files: uploads, next } = await store.listUploads(after);
  const rowById = await pool.run((sql) =>
    findStoreCheckRows(
      sql,
      uploads.map(({ key }) => key),
    ),
  );
  const found: FileFinding[] = [];
  // The data of uploads in progress must stay, and the sweeper deletes that of files in the state `removed`.
  const suspects = uploads.filter(({ key }) => !['uploading', 'removed'].includes(rowById.get(key)?.state ?? 'none'));
  const leftoverUploads = await filterUploadsStillInStore(store, suspects, after);
  await runInBatches(leftoverUploads, async ({ key: file, size: bytes }) => {
    if (isRepairing) await store.removeIncompleteUpload(file);
    found.push({ problem: 'upload', file, bytes, repaired: isRepairing });
  });
  if (next === null) found.push(...(await checkUsage(pool, isRepairing)));
  return {
    findings: found,
    files: 0,
    uploads: uploads.length,
    next: next && `${UPLOADS_CURSOR_PREFIX}${next}`,
    hasSkippedMarkingLost: false,
    isFilesPartDone: true,
  };
}

/**
 * Selects the uploads that a new listing of the store still has. An upload may have ended between the first listing and
 * the read of its row. Its data left the store before its row changed, so the new listing lacks it.
 */
async function filterUploadsStillInStore(
  store: FileStore,
  uploads: readonly StoredObject[],
  after: string | null,
): Promise<readonly StoredObject[]> {
  if (uploads.length === 0) return [];
  const newListing = await store.listUploads(after);
  const pages = [newListing.files];
  // Uploads that began after the first listing may push the last ones of this page to the next page.
  if (newListing.next !== null) pages.push((await store.listUploads(newListing.next)).files);
  const storedKeys = new Set(pages.flat().map(({ key }) => key));
  return uploads.filter(({ key }) => storedKeys.has(key));
}

/** Returns a finding for each account whose count of used space is wrong, at most a page of them. */
async function checkUsage(pool: Pool, isRepairing: boolean): Promise<FileFinding[]> {
  let wrongCountAccounts = 0;
  try {
    await pool.transaction(async (tx) => {
      wrongCountAccounts = await correctUsageCounts(tx);
      if (!isRepairing) throw new RollbackError('looked at only');
    });
  } catch (error) {
    if (!(error instanceof RollbackError)) throw error;
  }
  return Array.from({ length: Math.min(wrongCountAccounts, PAGE_SIZE) }, () => ({
    problem: 'usage',
    file: null,
    bytes: null,
    repaired: isRepairing,
  }));
}

async function hasRow(pool: Pool, id: string): Promise<boolean> {
  return (await pool.run((sql) => findStoreCheckRows(sql, [id]))).has(id);
}
