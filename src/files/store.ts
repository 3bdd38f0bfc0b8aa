import type { Readable } from 'node:stream';

/** The name of a file in a store: random, 22 characters of base64url, which only the server assigns. */
export type FileKey = string;

const FILE_KEY_PATTERN = /^[A-Za-z0-9_-]{22}$/;

/** True if a text has the form of a file's key. Other texts must not get into a path or a URL. */
export function isFileKey(text: string): text is FileKey {
  return FILE_KEY_PATTERN.test(text);
}

/**
 * Throws TypeError for a text that has not the form of a file's key. That is a bug of the caller, which must have
 * looked up the file.
 */
export function checkFileKey(key: string): void {
  if (!isFileKey(key)) throw new TypeError('this is not the key of a file');
}

/** Thrown when the store cannot be reached, or refuses requests. Messages are still delivered. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';
}

/** Thrown when the store has no free space. */
export class StoreFullError extends Error {
  override readonly name = 'StoreFullError';
}

/** Thrown when the store does not have the file or the upload. */
export class NotInStoreError extends Error {
  override readonly name = 'NotInStoreError';
}

/**
 * What a store must remember of an upload in progress. The database keeps it as JSON; only the store that wrote it
 * understands it.
 */
export type UploadState = Readonly<Record<string, unknown>>;

/** How much of an upload is stored safely: after a crash the upload continues from here. */
export interface UploadProgress {
  /** The number of bytes from the beginning of the file that survive any crash. */
  readonly receivedBytes: number;
  readonly state: UploadState;
}

/** The bytes from position `start` to position `end`, both included. */
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
  /**
   * Called from time to time with the progress that is stored safely: at most once a second, or once for each S3 part.
   * Its result is not awaited.
   */
  readonly onProgress: (progress: UploadProgress) => void;
  /** True: the file ends with these bytes. Some stores then need a request or two less. */
  readonly isEndOfFile?: boolean;
  /** True: no other code holds the chunks of `bytes`, so their memory is freed as soon as they are stored. */
  readonly mayFreeChunks?: boolean;
}

/** A page of a store's files, in the byte order of their keys. `next` null: this was the last page. */
export interface StoredPage {
  readonly files: readonly StoredObject[];
  /** The value of `after` for the next page. In a list of files it is the last key of this page. */
  readonly next: string | null;
}

/** The name of the object with the id of the store's database. No file has this name. */
export const STORE_ID_KEY = 'store-id';
/** The most bytes that are read of a store's id. The ids that Klatch assigns are shorter. */
export const MAX_STORE_ID_BYTES = 100;

/** The most entries in a page of a store's listing. */
export const STORE_PAGE_SIZE = 1_000;

/**
 * Stores the bytes of files. For the store's failures, all methods reject with StoreUnavailableError, StoreFullError or
 * NotInStoreError. No method waits without a time-out, except for the stream `bytes`, whose speed the caller has to
 * bound. Stores log nothing. The caller ensures that only one append at a time writes to a key.
 */
export interface FileStore {
  /** The store's name for people: "the folder /var/lib/klatch/files", "the bucket klatch". */
  readonly description: string;
  /** Throws StoreUnavailableError, with a reason for people, when the store is unusable. */
  checkUsable(): Promise<void>;
  /** The id of the database that the store's files belong to; null: the store has no id. */
  readStoreId(): Promise<string | null>;
  /** Writes the id of the store's database durably. Replaces an earlier id. */
  writeStoreId(id: string): Promise<void>;
  /** Prepares an upload with this key, and returns its initial state. */
  prepareStoreForUpload(key: FileKey): Promise<UploadState>;
  /**
   * Writes the bytes of `source`, from the position `progress.receivedBytes`; overwrites what the store has after that
   * position.
   * - The source ends normally: resolves to the new progress, with all bytes.
   * - The source fails: keeps the received bytes as far as possible, calls `onProgress`, and rejects with the source's
   *   error.
   * - The store fails: rejects; the source is neither read further nor destroyed.
   */
  append(key: FileKey, progress: UploadProgress, source: AppendSource): Promise<UploadProgress>;
  /** Completes an upload: afterwards the file exists and is complete. Repeating the call is safe. */
  finish(key: FileKey, progress: UploadProgress): Promise<void>;
  /**
   * Aborts an upload and removes its data. Also removes the file if the upload was completed meanwhile. Repeating the
   * call is safe.
   */
  removeUploadAndFile(key: FileKey, state: UploadState | null): Promise<void>;
  /** Removes the data of incomplete uploads with this key, but not the complete file. Repeating the call is safe. */
  removeIncompleteUpload(key: FileKey): Promise<void>;
  /**
   * Reads the file. Rejects on a failure before the first byte; a later failure destroys the stream with an error. The
   * caller has to read the stream to its end, or destroy it.
   */
  read(key: FileKey, range: ByteRange | null): Promise<Readable>;
  /**
   * A URL with which any client can get the file, with these headers, for `forMs` milliseconds. Null: the store makes
   * no such URLs, so the file must be read with `read`.
   */
  downloadUrl(
    key: FileKey,
    options: { forMs: number; headers: Readonly<Record<string, string>> },
  ): Promise<string | null>;
  /** Removes the file. Succeeds if it does not exist. */
  remove(key: FileKey): Promise<void>;
  /** The file's size in bytes; null: there is no such file. */
  size(key: FileKey): Promise<number | null>;
  /** Lists a page of files, from the first key after `after`; null: from the beginning. */
  list(after: FileKey | null): Promise<StoredPage>;
  /**
   * Lists a page of the uploads that were neither completed nor aborted. `after`: the `next` of the previous page. Some
   * stores list only a part of them.
   */
  listUploads(after: string | null): Promise<StoredPage>;
  /** Closes the store's connections; calls in progress fail. Idempotent. */
  stop(): Promise<void>;
}
