import type { Readable } from 'node:stream';

/** The name of a file in a store: random, 22 characters of base64url, which only the server assigns. */
export type FileKey = string;

const FILE_KEY_PATTERN = /^[A-Za-z0-9_-]{22}$/;

/** Whether a text has the form of a file's key: no other text gets into a path or a URL. */
export function isFileKey(text: string): text is FileKey {
  return FILE_KEY_PATTERN.test(text);
}

/** Throws TypeError for a text that is no file's key: its caller has not checked that the file exists. */
export function checkFileKey(key: string): void {
  if (!isFileKey(key)) throw new TypeError('this is not the key of a file');
}

/** The store cannot be reached, or refuses requests. Messages still flow. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';
}

/** The store has no free space. */
export class StoreFullError extends Error {
  override readonly name = 'StoreFullError';
}

/** The store has no such file. */
export class NotInStoreError extends Error {
  override readonly name = 'NotInStoreError';
}

/** The store's state of an upload. The database stores it as JSON between parts, and only the store reads it. */
export type UploadState = Readonly<Record<string, unknown>>;

/** The safely stored part of an upload: after a crash the upload continues from here. */
export interface UploadProgress {
  /** Bytes that survive any crash from now on. */
  readonly received: number;
  readonly state: UploadState;
}

/** Bytes from `start` to `end`, both included. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** A stored file, or the stored part of an upload in progress. */
export interface StoredObject {
  readonly key: FileKey;
  readonly size: number;
  readonly modifiedAt: Date;
}

/** The input of an append. */
export interface AppendSource {
  readonly bytes: Readable;
  /** Called at most once a second or once a part, with the safe progress. Its result is not awaited. */
  readonly onProgress: (progress: UploadProgress) => void;
  /** True: the file ends with these bytes, which saves some stores a request or two. */
  readonly isLast?: boolean;
  /** True: no other code holds the chunks of `bytes`, so their memory is freed as soon as they are stored. */
  readonly mayFreeChunks?: boolean;
}

/** A page of a store's contents, by key in byte order; `next` null: this was the last page. */
export interface StoredPage {
  readonly files: readonly StoredObject[];
  /** The value of `after` for the next page. In a list of files it is the last key of this page. */
  readonly next: string | null;
}

/** The name under which a store has the database's id: no file has this name. */
export const STORE_ID_KEY = 'store-id';
/** The most bytes of an id: the ids that Klatch assigns are shorter. */
export const MAX_STORE_ID_BYTES = 100;

/** The maximum of entries in a page. */
export const STORE_PAGE_SIZE = 1_000;

/**
 * The store with the bytes of files. All methods reject with StoreUnavailableError, StoreFullError or NotInStoreError
 * for the store's failures. No method waits without a time-out, except for the stream `bytes`, which the caller has to
 * bound. Stores log nothing. The caller ensures that only one append at a time writes to a key.
 */
export interface FileStore {
  /** The store's name for people: "the folder /var/lib/klatch/files", "the bucket klatch". */
  readonly description: string;
  /** Throws StoreUnavailableError, with a reason for people, when the store is unusable. */
  checkUsable(): Promise<void>;
  /** The id of the database that the store's files belong to; null: the store has no id. */
  readStoreId(): Promise<string | null>;
  /** Writes the id of a database durably, and replaces another one. */
  writeStoreId(id: string): Promise<void>;
  /** Begins an upload. */
  prepareStoreForUpload(key: FileKey): Promise<UploadState>;
  /**
   * Appends the bytes of `bytes`, from `progress.received` on (the store's bytes after that position are overwritten).
   * Resolves to the safe progress, which includes all bytes when the source ended normally. When the source fails, the
   * store keeps the received bytes as far as it can and calls `onProgress`. The promise then rejects with the source's
   * error. When the store fails, the source is neither read further nor destroyed.
   */
  append(key: FileKey, progress: UploadProgress, source: AppendSource): Promise<UploadProgress>;
  /** Completes an upload: from here on the file exists and is complete. Repeating the call is safe. */
  finish(key: FileKey, progress: UploadProgress): Promise<void>;
  /**
   * Aborts an upload and removes its data, and also the file if the upload was completed meanwhile. Repeating the call
   * is safe.
   */
  abortAndRemove(key: FileKey, state: UploadState | null): Promise<void>;
  /** Removes the data of a file's uploads, but not the file. Repeating the call is safe. */
  dropUpload(key: FileKey): Promise<void>;
  /**
   * The file's bytes. A failure before the first byte rejects; a later one fails the stream. The caller has to read the
   * stream to its end, or destroy it.
   */
  read(key: FileKey, range: ByteRange | null): Promise<Readable>;
  /**
   * A URL that returns the file, with these headers, to any client that has the URL, for `forMs`. Null: the store has
   * no such URLs, and the file comes from `read`.
   */
  downloadUrl(
    key: FileKey,
    options: { forMs: number; headers: Readonly<Record<string, string>> },
  ): Promise<string | null>;
  /** Removes the file. Succeeds if it does not exist. */
  remove(key: FileKey): Promise<void>;
  /** The file's size; null: there is no such file. */
  size(key: FileKey): Promise<number | null>;
  /** All files after the key `after`; null: from the beginning. */
  list(after: FileKey | null): Promise<StoredPage>;
  /** All uploads after `after` that were neither completed nor aborted, as far as the store lists them. */
  listUploads(after: string | null): Promise<StoredPage>;
  /** Closes the store's connections; calls in progress fail. Idempotent. */
  stop(): Promise<void>;
}
