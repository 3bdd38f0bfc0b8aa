import { constants } from 'node:fs';
import { access, lstat, open, rename, unlink, type FileHandle } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { appendToFile, type AppendResult } from './append-to-file.ts';
import { ChunkBuffer } from './chunk-buffer.ts';
import { isFileSystemErrorWithCode, notInStoreError, toStoreError } from './local-errors.ts';
import { LocalFolders, syncFolder } from './local-folders.ts';
import {
  checkFileKey,
  MAX_STORE_ID_BYTES,
  type AppendSource,
  type ByteRange,
  type FileKey,
  type FileStore,
  type UploadProgress,
  type StoredPage,
  type UploadState,
} from './store.ts';

const FILE_MODE = 0o600;
const { O_CREAT, O_NOFOLLOW, O_RDONLY, O_TRUNC, O_WRONLY } = constants;
/** The bytes of one read of a file. With Node's default of 64 KiB, a download spends most of its time between reads. */
const READ_CHUNK_BYTES = 512 * 1024;

/**
 * Stores files in a folder. An upload is written to a folder of its own, synced, and then renamed into the folder of
 * files. So every file there is complete. File names are only keys, symbolic links are refused, and no other user of
 * the machine may read the folders.
 */
export class LocalStore implements FileStore {
  readonly description: string;
  readonly #folders: LocalFolders;

  /** @param location absolute path of the folder; its parent folder must exist. */
  constructor(location: string) {
    this.description = `the folder ${location}`;
    this.#folders = new LocalFolders(location);
  }

  async checkUsable(): Promise<void> {
    await this.#translateErrors(async () => {
      await this.#folders.ensureStoreFolders();
      for (const folder of [this.#folders.location, this.#folders.uploadsFolder]) {
        await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
      }
    });
  }

  async readStoreId(): Promise<string | null> {
    return this.#translateErrors(async () => {
      try {
        const handle = await open(this.#folders.storeIdPath, O_RDONLY | O_NOFOLLOW);
        try {
          const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(MAX_STORE_ID_BYTES) });
          return buffer.toString('latin1', 0, bytesRead).trim();
        } finally {
          await handle.close();
        }
      } catch (error) {
        if (isFileSystemErrorWithCode(error, 'ENOENT')) return null;
        throw error;
      }
    });
  }

  async writeStoreId(id: string): Promise<void> {
    await this.#translateErrors(async () => {
      await this.#folders.ensureStoreFolders();
      const path = this.#folders.storeIdPath;
      const newPath = `${path}.new`;
      const handle = await open(newPath, O_WRONLY | O_NOFOLLOW | O_CREAT | O_TRUNC, FILE_MODE);
      try {
        await handle.writeFile(`${id}\n`);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(newPath, path);
      await syncFolder(this.#folders.location);
    });
  }

  async prepareStoreForUpload(key: FileKey): Promise<UploadState> {
    checkFileKey(key);
    // No file is created here, but by the first append. Until then there is nothing to remove.
    await this.#translateErrors(() => this.#folders.ensureStoreFolders());
    return {};
  }

  async append(key: FileKey, progress: UploadProgress, source: AppendSource): Promise<UploadProgress> {
    checkFileKey(key);
    const { receivedBytes: received, state } = progress;
    const { bytes, onProgress, mayFreeChunks = false } = source;
    const onDurable = (durableBytes: number): void => onProgress({ receivedBytes: durableBytes, state });
    // The buffer is created before the file is opened, so that it notices if the source fails meanwhile.
    const buffer = new ChunkBuffer(bytes);
    try {
      const { durableBytes, sourceError } = await this.#translateErrors(() =>
        this.#openAndAppend(key, received, { buffer, onDurable, mayFreeChunks }),
      );
      if (sourceError !== null) throw sourceError;
      return { receivedBytes: durableBytes, state };
    } finally {
      buffer.detachAndPause();
    }
  }

  async finish(key: FileKey, { receivedBytes: received }: UploadProgress): Promise<void> {
    checkFileKey(key);
    await this.#translateErrors(async () => {
      const folder = this.#folders.folderPathOf(key);
      const isUploading = await this.#truncateUploadIfPresent(key, received);
      if (!isUploading && (await this.#fileSize(key)) !== received) throw notInStoreError(this.description);
      if (isUploading) {
        await this.#folders.ensureFolder(folder);
        await rename(this.#folders.uploadPathOf(key), this.#folders.filePathOf(key));
      }
      // The folders are synced even if the file was renamed by an earlier call: that call may have been killed before
      // its sync.
      await Promise.all([syncFolder(folder), syncFolder(this.#folders.uploadsFolder)]);
    });
  }

  async removeUploadAndFile(key: FileKey, _state: UploadState | null): Promise<void> {
    await this.removeIncompleteUpload(key);
    await this.remove(key);
  }

  async removeIncompleteUpload(key: FileKey): Promise<void> {
    checkFileKey(key);
    await this.#translateErrors(() =>
      this.#unlinkDurably(this.#folders.uploadsFolder, this.#folders.uploadPathOf(key)),
    );
  }

  async read(key: FileKey, range: ByteRange | null): Promise<Readable> {
    checkFileKey(key);
    return this.#translateErrors(async () => {
      const handle = await this.#openFile(key);
      // The stream closes the file when it ends, fails or is destroyed.
      return handle.createReadStream({ highWaterMark: READ_CHUNK_BYTES, ...range });
    });
  }

  async downloadUrl(): Promise<null> {
    return null;
  }

  async remove(key: FileKey): Promise<void> {
    checkFileKey(key);
    await this.#translateErrors(() =>
      this.#unlinkDurably(this.#folders.folderPathOf(key), this.#folders.filePathOf(key)),
    );
  }

  async size(key: FileKey): Promise<number | null> {
    checkFileKey(key);
    return this.#translateErrors(() => this.#fileSize(key));
  }

  async list(after: FileKey | null): Promise<StoredPage> {
    return this.#translateErrors(() => this.#folders.list(after));
  }

  async listUploads(after: string | null): Promise<StoredPage> {
    return this.#translateErrors(() => this.#folders.listUploads(after));
  }

  async stop(): Promise<void> {}

  async #openAndAppend(
    key: FileKey,
    received: number,
    appendOptions: { buffer: ChunkBuffer; onDurable: (durableBytes: number) => void; mayFreeChunks: boolean },
  ): Promise<AppendResult> {
    const handle = await this.#openUpload(key, received);
    try {
      // For a new file the folder is synced first: without its name, the bytes of the file would be lost in a crash.
      if (received === 0) await syncFolder(this.#folders.uploadsFolder);
      return await appendToFile(handle, received, appendOptions);
    } finally {
      await handle.close();
    }
  }

  /**
   * Opens an upload for writing. Does not truncate the bytes after `received`: in a shared folder, another node may
   * still write such bytes and count them as received. After a truncation the other node's next write would leave a gap
   * of zeros.
   */
  async #openUpload(key: FileKey, received: number): Promise<FileHandle> {
    const isNew = received === 0;
    if (isNew) await this.#folders.ensureStoreFolders();
    else await this.#folders.requireRealFolder(this.#folders.uploadsFolder);
    const handle = await open(
      this.#folders.uploadPathOf(key),
      O_WRONLY | O_NOFOLLOW | (isNew ? O_CREAT : 0),
      FILE_MODE,
    ).catch((error: unknown) => this.#rejectMissing(error));
    try {
      await this.#requireSize(handle, received);
      return handle;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Truncates the file of an upload to `received` bytes; false: there is no such file. */
  async #truncateUploadIfPresent(key: FileKey, received: number): Promise<boolean> {
    let handle: FileHandle;
    try {
      const createFlag = received === 0 && (await this.#fileSize(key)) === null ? O_CREAT : 0;
      handle = await open(this.#folders.uploadPathOf(key), O_WRONLY | O_NOFOLLOW | createFlag, FILE_MODE);
    } catch (error) {
      if (isFileSystemErrorWithCode(error, 'ENOENT')) return false;
      throw error;
    }
    try {
      if (await this.#truncateIfLonger(handle, received)) await handle.datasync();
      return true;
    } finally {
      await handle.close();
    }
  }

  /**
   * Truncates a file to `received` bytes; true: the file was longer. Throws NotInStoreError when the file is shorter.
   */
  async #truncateIfLonger(handle: FileHandle, received: number): Promise<boolean> {
    const isLonger = (await this.#requireSize(handle, received)) > received;
    if (isLonger) await handle.truncate(received);
    return isLonger;
  }

  /**
   * The size of a file in bytes. Throws NotInStoreError when it is less than `received`: bytes that were already synced
   * are lost.
   */
  async #requireSize(handle: FileHandle, received: number): Promise<number> {
    const found = await handle.stat();
    if (!found.isFile() || found.size < received) throw notInStoreError(this.description);
    return found.size;
  }

  async #openFile(key: FileKey): Promise<FileHandle> {
    try {
      await this.#folders.requireRealFolder(this.#folders.folderPathOf(key));
      const handle = await open(this.#folders.filePathOf(key), O_RDONLY | O_NOFOLLOW);
      if ((await handle.stat()).isFile()) return handle;
      await handle.close();
    } catch (error) {
      return this.#rejectMissing(error);
    }
    throw notInStoreError(this.description);
  }

  /**
   * Always rejects: with NotInStoreError for a missing file; with the file system's error for another failure, and if
   * the store's folder is missing.
   */
  async #rejectMissing(error: unknown): Promise<never> {
    if (!isFileSystemErrorWithCode(error, 'ENOENT')) throw error;
    await lstat(this.#folders.location);
    throw notInStoreError(this.description);
  }

  async #fileSize(key: FileKey): Promise<number | null> {
    try {
      await this.#folders.requireRealFolder(this.#folders.folderPathOf(key));
      const found = await lstat(this.#folders.filePathOf(key));
      return found.isFile() ? found.size : null;
    } catch (error) {
      if (!isFileSystemErrorWithCode(error, 'ENOENT')) throw error;
      await lstat(this.#folders.location);
      return null;
    }
  }

  async #unlinkDurably(folder: string, path: string): Promise<void> {
    try {
      await this.#folders.requireRealFolder(folder);
      await unlink(path);
    } catch (error) {
      if (!isFileSystemErrorWithCode(error, 'ENOENT')) throw error;
      // The file does not exist. If the store's folder does not exist either, its file system is not mounted, so this
      // call must fail.
      await lstat(this.#folders.location);
      return;
    }
    await syncFolder(folder);
  }

  async #translateErrors<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw toStoreError(error, this.description);
    }
  }
}
