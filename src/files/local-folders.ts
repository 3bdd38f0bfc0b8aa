import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isFileSystemErrorWithCode } from './local-errors.ts';
import {
  isFileKey,
  STORE_ID_KEY,
  STORE_PAGE_SIZE,
  StoreUnavailableError,
  type FileKey,
  type StoredObject,
  type StoredPage,
} from './store.ts';

/**
 * The folder of uploads in progress. It is inside the store's folder, so that a complete upload is renamed and never
 * copied.
 */
const UPLOADS_FOLDER = 'uploads';
const FOLDER_MODE = 0o700;
/**
 * A folder has the first two characters of its files' keys as its name, so there are 4,096 folders. Keys are random, so
 * all folders have about as many files.
 */
const KEY_PREFIX_PATTERN = /^[A-Za-z0-9_-]{2}$/;

/**
 * The paths of a local store: `<location>/<first two characters>/<key>` for files, and `<location>/uploads/<key>` for
 * uploads. `<location>/store-id` identifies the database that they belong to.
 */
export class LocalFolders {
  readonly location: string;
  readonly uploadsFolder: string;
  readonly storeIdPath: string;

  constructor(location: string) {
    this.location = location;
    this.uploadsFolder = join(location, UPLOADS_FOLDER);
    this.storeIdPath = join(location, STORE_ID_KEY);
  }

  /** The path of the folder that a file belongs to. */
  folderPathOf(key: FileKey): string {
    return join(this.location, key.slice(0, 2));
  }

  filePathOf(key: FileKey): string {
    return join(this.folderPathOf(key), key);
  }

  uploadPathOf(key: FileKey): string {
    return join(this.uploadsFolder, key);
  }

  /**
   * Creates the store's folder and the folder of uploads in it. The parent folder must exist: the administrator creates
   * it.
   */
  async ensureStoreFolders(): Promise<void> {
    // The store's folder itself may be a symbolic link that the administrator made, so this call does not refuse one.
    await createFolder(this.location);
    await this.ensureFolder(this.uploadsFolder);
  }

  /**
   * Creates a folder in the store's folder and syncs that, unless the new folder exists. Refuses a symbolic link in its
   * place.
   */
  async ensureFolder(folder: string): Promise<void> {
    if (await createFolder(folder)) await syncFolder(this.location);
    else await this.requireRealFolder(folder);
  }

  /** Throws StoreUnavailableError if the path is not a folder, and ENOENT if it does not exist. */
  async requireRealFolder(folder: string): Promise<void> {
    const found = await lstat(folder);
    if (found.isDirectory()) return;
    throw new StoreUnavailableError(
      `the folder ${this.location}: something that is no folder is in the place of one within it; move it away`,
    );
  }

  /** Lists a page of files, from the first key after `after`. */
  async list(after: FileKey | null): Promise<StoredPage> {
    const entries = await readdir(this.location, { withFileTypes: true });
    const firstPrefix = after?.slice(0, 2) ?? '';
    const folders = entries.filter(
      (entry) => entry.isDirectory() && KEY_PREFIX_PATTERN.test(entry.name) && entry.name >= firstPrefix,
    );
    const files: StoredObject[] = [];
    for (const name of folders.map((entry) => entry.name).sort()) {
      const limit = STORE_PAGE_SIZE - files.length;
      const page = await listFolder(join(this.location, name), { after, limit, keyPrefixFilter: name });
      files.push(...page.files);
      if (page.isTruncated || files.length >= STORE_PAGE_SIZE) return { files, next: page.last };
    }
    return { files, next: null };
  }

  /** Lists a page of uploads, from the first key after `after`. */
  async listUploads(after: string | null): Promise<StoredPage> {
    const { files, isTruncated, last } = await listFolder(this.uploadsFolder, {
      after,
      limit: STORE_PAGE_SIZE,
      keyPrefixFilter: '',
    });
    return { files, next: isTruncated ? last : null };
  }
}

/** Syncs a folder (fsync), so that new, renamed and removed entries in it survive a crash. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Creates a folder; false: the path existed already. */
async function createFolder(folder: string): Promise<boolean> {
  try {
    await mkdir(folder, { mode: FOLDER_MODE });
    return true;
  } catch (error) {
    if (isFileSystemErrorWithCode(error, 'EEXIST')) return false;
    throw error;
  }
}

/**
 * Lists a page of the files in a folder, without names that are not keys of files. `last` in the result: the last key
 * of the page.
 */
async function listFolder(
  folder: string,
  { after, limit, keyPrefixFilter }: { after: string | null; limit: number; keyPrefixFilter: string },
): Promise<{ files: StoredObject[]; isTruncated: boolean; last: string | null }> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (isFileSystemErrorWithCode(error, 'ENOENT')) return [];
    throw error;
  });
  const keys = names.filter(
    (name) => isFileKey(name) && name.startsWith(keyPrefixFilter) && (after === null || name > after),
  );
  const page = keys.sort().slice(0, limit);
  const storedObjects = await Promise.all(page.map((key) => statStoredObject(join(folder, key), key)));
  const files = storedObjects.filter((file) => file !== null);
  return { files, isTruncated: page.length < keys.length, last: page.at(-1) ?? after };
}

/** The key and the size of a file; null if the file was deleted after the listing, or is not a regular file. */
async function statStoredObject(path: string, key: FileKey): Promise<StoredObject | null> {
  try {
    const found = await lstat(path);
    return found.isFile() ? { key, size: found.size, modifiedAt: found.mtime } : null;
  } catch (error) {
    if (isFileSystemErrorWithCode(error, 'ENOENT')) return null;
    throw error;
  }
}
