import type { Readable } from 'node:stream';

/** The name of a file in a store: random, 22 characters of base64url, given by the server and by nobody else. */
export type FileKey = string;

const FILE_KEY_PATTERN = /^[A-Za-z0-9_-]{22}$/;

/** Whether a text could be the name of a file: what is not never gets into a path or an address. */
export function isFileKey(text: string): text is FileKey {
  return FILE_KEY_PATTERN.test(text);
}

/** Throws TypeError, since whoever asks with another name has not looked whether there is such a file. */
export function checkFileKey(key: string): void {
  if (!isFileKey(key)) throw new TypeError('this is not the key of a file');
}

/** The store cannot be reached, or refuses for reasons of its own. Messages still flow. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';
}

/** There is no room left in the store. */
export class StoreFullError extends Error {
  override readonly name = 'StoreFullError';
}

/** The store has no such file. */
export class NotInStoreError extends Error {
  override readonly name = 'NotInStoreError';
}

/** How an upload goes on; the database keeps it (as JSON) between parts, and the store alone reads it. */
export type UploadState = Readonly<Record<string, unknown>>;

/** What is stored safely of an upload: after a crash it goes on from here. */
export interface UploadProgress {
  /** Bytes that survive whatever happens now. */
  readonly received: number;
  readonly state: UploadState;
}

/** Bytes `start` up to and with `end`. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** A file as the store has it, or what it has of an upload under way. */
export interface StoredObject {
  readonly key: FileKey;
  readonly size: number;
  readonly modifiedAt: Date;
}

/** What is appended. */
export interface AppendSource {
  readonly bytes: Readable;
  /** Told, at most every second or every part, how far it is safe; not waited for. */
  readonly onProgress: (progress: UploadProgress) => void;
  /** True: the file ends with these bytes, which spares some stores a request or two. */
  readonly isLast?: boolean;
  /** True: the chunks of `bytes` are nobody else's, so that their memory is given back as soon as they are stored. */
  readonly mayFreeChunks?: boolean;
}

/** A page of what a store has, by key in the order of bytes; `next` null: that was all. */
export interface StoredPage {
  readonly files: readonly StoredObject[];
  /** What `after` of the next page is. Of files it is the last key of this page. */
  readonly next: string | null;
}

/** The name of the id in a store: no file has such a name. */
export const STORE_ID_KEY = 'store-id';
/** Longer ones are not of Klatch. */
export const MAX_STORE_ID_BYTES = 100;

/** At most so many in a page. */
export const STORE_PAGE_SIZE = 1_000;

/**
 * Where the bytes of files are. All methods reject with StoreUnavailableError, StoreFullError or NotInStoreError for what the
 * store does; none of them waits without a bound, except for `bytes`, whose end is the caller's business. Nothing is
 * logged here. One append at a time goes to a key: the caller sees to it.
 */
export interface FileStore {
  /** For people: "the folder /var/lib/klatch/files", "the bucket klatch". */
  readonly description: string;
  /** Throws StoreUnavailableError, with a reason for people, when it cannot be worked with. */
  checkUsable(): Promise<void>;
  /** The id that says which database its files belong to; null: it has none. */
  readStoreId(): Promise<string | null>;
  /** Writes the id, durably, in the place of another one. */
  writeStoreId(id: string): Promise<void>;
  /** Begins an upload. */
  prepareStoreForUpload(key: FileKey): Promise<UploadState>;
  /**
   * Appends what `bytes` gives, from `progress.received` on (what is beyond it in the store is overwritten), and resolves
   * to how far it is safe then: all of it when the source ended well. When the source fails, what arrived is kept as far
   * as the store can and `onProgress` is told, and the returned promise rejects with the source's error. When the store
   * fails, the source is left where it is, neither read on nor destroyed.
   */
  append(key: FileKey, progress: UploadProgress, source: AppendSource): Promise<UploadProgress>;
  /** Ends an upload: from here on the file is there, whole, whatever happens. Repeating it is safe. */
  finish(key: FileKey, progress: UploadProgress): Promise<void>;
  /** Gives an upload up, and removes what there is of it, a file that it became meanwhile too. Repeating it is safe. */
  abortAndRemove(key: FileKey, state: UploadState | null): Promise<void>;
  /** Removes what there is of uploads of a file, and leaves the file. Repeating it is safe. */
  dropUpload(key: FileKey): Promise<void>;
  /** The file's bytes. Rejects before the first one, or the stream fails. Whoever asks ends or destroys the stream. */
  read(key: FileKey, range: ByteRange | null): Promise<Readable>;
  /** An address that gives the file, with these headers, to whoever has it within `forMs`; null: only `read` does. */
  downloadUrl(
    key: FileKey,
    options: { forMs: number; headers: Readonly<Record<string, string>> },
  ): Promise<string | null>;
  /** Removes the file. One that is not there is removed. */
  remove(key: FileKey): Promise<void>;
  /** Its size; null: there is none. */
  size(key: FileKey): Promise<number | null>;
  /** Everything that is there behind the key `after`; null: from the beginning on. */
  list(after: FileKey | null): Promise<StoredPage>;
  /** The same of uploads that were begun and not ended, as far as the store tells. */
  listUploads(after: string | null): Promise<StoredPage>;
  /** Closes its connections; calls under way fail. Idempotent. */
  stop(): Promise<void>;
}
