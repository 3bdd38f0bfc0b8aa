import { access, constants, stat } from 'node:fs/promises';
import { dirname, isAbsolute, relative, sep } from 'node:path';
import type { Config } from '../config/config.ts';
import { createFileStore } from '../files/create-store.ts';
import { describeMismatch } from '../files/store-id.ts';
import { StoreUnavailableError, type FileStore } from '../files/store.ts';
import { error, ok, type CheckResult } from './finding.ts';

const OWNERSHIP_ADVICE =
  'chown it to the user of the server, with all that is in it, or change services.file-storage.location.';

const STORE_ADVICE = 'docs/files.md says what each answer of a store means.';
const ID_ADVICE = 'Put that right before the server is started again: it refuses to. docs/files.md has more.';

/** The values that the file store is compared with. */
interface FileStoreExpectation {
  /** The user id of the running server; null: no server runs, or its user is not known. */
  readonly runningServerUid: number | null;
  /** The store id in the database; undefined: the database did not answer. */
  readonly storeIdInDatabase: string | null | undefined;
}

/** Checks whether the store can keep files, and whether it belongs to the database. Creates and writes nothing. */
export async function checkFileStore(config: Config, expected: FileStoreExpectation): Promise<CheckResult> {
  const store = createFileStore(config.files, { maxFileBytes: config.limits.fileBytes });
  try {
    const result =
      config.files.s3 === null
        ? await checkLocalFolder(config, expected.runningServerUid)
        : await checkBucketByListing(store);
    return result.level === 'ok' ? ((await checkStoreId(store, expected.storeIdInDatabase)) ?? result) : result;
  } finally {
    await store.stop();
  }
}

async function checkStoreId(store: FileStore, expected: string | null | undefined): Promise<CheckResult | null> {
  if (expected === undefined) return null;
  try {
    const mismatch = describeMismatch(store.description, await store.readStoreId(), expected);
    return mismatch === null ? null : error(mismatch, ID_ADVICE);
  } catch (cause) {
    if (!(cause instanceof StoreUnavailableError)) throw cause;
    return error(cause.message, STORE_ADVICE);
  }
}

async function checkLocalFolder(
  { files: { localFilesFolder }, dataDir }: Config,
  runningServerUid: number | null,
): Promise<CheckResult> {
  const statsOrErrorCode = await stat(localFilesFolder).catch(({ code }: NodeJS.ErrnoException) => code ?? 'unknown');
  if (typeof statsOrErrorCode === 'string') {
    if (statsOrErrorCode !== 'ENOENT')
      return error(`${localFilesFolder} cannot be reached (${statsOrErrorCode})`, OWNERSHIP_ADVICE);
    if (await willParentFolderExist(localFilesFolder, dataDir))
      return ok(`${localFilesFolder} is not there yet: the server makes it`);
    const todo = `Make ${dirname(localFilesFolder)}, mount it, or change services.file-storage.location.`;
    return error(`${localFilesFolder} is not there, and neither is the folder above it`, todo);
  }
  if (!statsOrErrorCode.isDirectory()) {
    return error(`${localFilesFolder} is not a folder`, 'Move it away, or change services.file-storage.location.');
  }
  if (runningServerUid !== null && runningServerUid !== 0 && statsOrErrorCode.uid !== runningServerUid) {
    return error(
      `${localFilesFolder} belongs to uid ${statsOrErrorCode.uid} and the server runs as uid ${runningServerUid}`,
      OWNERSHIP_ADVICE,
    );
  }
  const { R_OK, W_OK, X_OK } = constants;
  const accessErrorCode = await access(localFilesFolder, R_OK | W_OK | X_OK).then(
    () => null,
    ({ code }: NodeJS.ErrnoException) => code ?? 'unknown',
  );
  if (accessErrorCode !== null)
    return error(`${localFilesFolder} cannot be written (${accessErrorCode})`, OWNERSHIP_ADVICE);
  return ok(`${localFilesFolder} can be written`);
}

/**
 * Whether the folder above the local files' folder exists when the server makes the files' folder. The server does not
 * make the folder above, which may be the mount point of a disk that is not mounted. It makes the data directory first,
 * with its missing ancestors.
 */
async function willParentFolderExist(localFilesFolder: string, dataDir: string): Promise<boolean> {
  const parentStatsOrErrorCode = await stat(dirname(localFilesFolder)).catch(
    ({ code }: NodeJS.ErrnoException) => code ?? 'unknown',
  );
  if (typeof parentStatsOrErrorCode !== 'string') return parentStatsOrErrorCode.isDirectory();
  return parentStatsOrErrorCode === 'ENOENT' && isFolderOrWithin(dataDir, dirname(localFilesFolder));
}

/** Whether a path is the folder itself or within it. */
function isFolderOrWithin(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

async function checkBucketByListing(store: FileStore): Promise<CheckResult> {
  try {
    await store.checkUsable();
    return ok(`${store.description} answers`);
  } catch (cause) {
    if (!(cause instanceof StoreUnavailableError)) throw cause;
    return error(cause.message, STORE_ADVICE);
  }
}
