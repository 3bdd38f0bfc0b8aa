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
 * The name of the folder for uploads. It is within the location of the files, so that a finished upload is moved and
 * never copied.
 */
const UPLOADS_FOLDER = 'uploads';
const FOLDER_MODE = 0o700;
/**
 * The names of the 4,096 folders of files: the beginning of their keys. Keys are random, so the folders have about the
 * same size.
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

  /** The folder of a file. */
  folderPathOf(key: FileKey): string {
    return join(this.location, key.slice(0, 2));
  }

  filePathOf(key: FileKey): string {
    return join(this.folderPathOf(key), key);
  }

  uploadPathOf(key: FileKey): string {
    return join(this.uploadsFolder, key);
  }

  /** Creates the location and the folder of uploads; the administrator creates the parent folder. */
  async ensureStoreFolders(): Promise<void> {
    // The location itself may be a symbolic link, which the administrator made.
    await createFolder(this.location);
    await this.ensureFolder(this.uploadsFolder);
  }

  /** Creates a folder in the location, durably, unless it exists. Refuses a symbolic link in its place. */
  async ensureFolder(folder: string): Promise<void> {
    if (await createFolder(folder)) await syncFolder(this.location);
    else await this.requireRealFolder(folder);
  }

  /** Throws StoreUnavailableError if the path is not a folder, and ENOENT if it does not exist. */
  async requireRealFolder(folder: string): Promise<void> {
    const found = await lstat(folder);
    if (found.isDirectory()) return;
    throw new StoreUnavailableError(
      `the folder ${this.location}: something that is no folder is in the place of one within it`,
    );
  }

  /** A page of files after a key. */
  async list(after: FileKey | null): Promise<StoredPage> {
    const entries = await readdir(this.location, { withFileTypes: true });
    const first = after?.slice(0, 2) ?? '';
    const folders = entries.filter(
      (entry) => entry.isDirectory() && KEY_PREFIX_PATTERN.test(entry.name) && entry.name >= first,
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

  /** A page of uploads after a key. */
  async listUploads(after: string | null): Promise<StoredPage> {
    const { files, isTruncated, last } = await listFolder(this.uploadsFolder, {
      after,
      limit: STORE_PAGE_SIZE,
      keyPrefixFilter: '',
    });
    return { files, next: isTruncated ? last : null };
  }
}

/** Makes a folder's entries durable. */
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
 * A page of the files in a folder, without names that are not file keys. `last`: the key after which the next page
 * starts.
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
  const found = await Promise.all(page.map((key) => statStoredObject(join(folder, key), key)));
  const files = found.filter((file) => file !== null);
  return { files, isTruncated: page.length < keys.length, last: page.at(-1) ?? after };
}

/** A file's key and size; null for a file that was deleted meanwhile, and for anything but a regular file. */
async function statStoredObject(path: string, key: FileKey): Promise<StoredObject | null> {
  try {
    const found = await lstat(path);
    return found.isFile() ? { key, size: found.size, modifiedAt: found.mtime } : null;
  } catch (error) {
    if (isFileSystemErrorWithCode(error, 'ENOENT')) return null;
    throw error;
  }
}
