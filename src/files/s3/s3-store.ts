import type { Readable } from 'node:stream';
import type { S3Config } from '../../config/config.ts';
import { PartBufferPool } from '../part-buffer-pool.ts';
import { appendToS3 } from './s3-append.ts';
import { S3Bucket } from './s3-bucket.ts';
import { S3Client, type S3Bounds } from './s3-client.ts';
import { newState, partBytesFor, readProgress, readState, type S3State } from './s3-state.ts';
import {
  checkFileKey,
  NotInStoreError,
  type AppendSource,
  type ByteRange,
  type FileKey,
  type FileStore,
  type Progress,
  type StoredPage,
  type UploadState,
} from '../store.ts';

/** Uploads of one file that are given up at once; more are left of no crash. */
const MAX_DROPPED = 100;

/** Files as objects of a bucket, by their keys; an upload is one request, or several parts of which the store makes one. */
export class S3Store implements FileStore {
  readonly description: string;
  readonly #client: S3Client;
  readonly #bucket: S3Bucket;
  readonly #partBytes: number;
  readonly #partBuffers: PartBufferPool;
  readonly #redirects: boolean;

  constructor(config: S3Config, options: { maxFileBytes: number; bounds?: S3Bounds; reservationWaitMs?: number }) {
    this.#client = new S3Client(config, options.bounds);
    this.description = this.#client.description;
    this.#bucket = new S3Bucket(this.#client);
    this.#partBytes = partBytesFor(options.maxFileBytes);
    this.#partBuffers = new PartBufferPool(this.#partBytes, options.reservationWaitMs);
    this.#redirects = config.downloads === 'redirect';
  }

  check(): Promise<void> {
    return this.#bucket.check();
  }

  async begin(key: FileKey): Promise<UploadState> {
    checkFileKey(key);
    return { ...newState(this.#partBytes) };
  }

  async append(key: FileKey, progress: Progress, source: AppendSource): Promise<Progress> {
    checkFileKey(key);
    const state = readProgress(progress);
    if (state.isComplete) throw new NotInStoreError('the upload has had its last bytes');
    return appendToS3({ bucket: this.#bucket, partBuffers: this.#partBuffers, key }, state, source);
  }

  async finish(key: FileKey, progress: Progress): Promise<void> {
    checkFileKey(key);
    const state = readProgress(progress);
    try {
      await this.#finish(key, state);
    } catch (error) {
      // The store forgets an upload that it has ended.
      if (!(error instanceof NotInStoreError) || (await this.size(key)) !== progress.received) throw error;
    }
    if (state.hasRemainder) await this.#bucket.removeTails(key, null);
  }

  async abort(key: FileKey, state: UploadState | null): Promise<void> {
    checkFileKey(key);
    const known = state === null ? null : this.#uploadIdOf(state);
    if (known !== null) await this.#bucket.abortUpload(key, known);
    await this.dropUpload(key);
    await this.#bucket.remove(key);
  }

  async dropUpload(key: FileKey): Promise<void> {
    checkFileKey(key);
    // Of one that was begun just before the process died nobody has noted the name.
    const found = await this.#bucket.uploadsOf(key);
    for (const { uploadId } of found.slice(0, MAX_DROPPED)) await this.#bucket.abortUpload(key, uploadId);
    await this.#bucket.removeTails(key, null);
  }

  async read(key: FileKey, range: ByteRange | null): Promise<Readable> {
    checkFileKey(key);
    return this.#bucket.read(key, range);
  }

  async link(
    key: FileKey,
    options: { forMs: number; headers: Readonly<Record<string, string>> },
  ): Promise<string | null> {
    checkFileKey(key);
    return this.#redirects ? this.#client.link(key, options) : null;
  }

  async remove(key: FileKey): Promise<void> {
    checkFileKey(key);
    await this.#bucket.remove(key);
  }

  async size(key: FileKey): Promise<number | null> {
    checkFileKey(key);
    return this.#bucket.size(key);
  }

  list(after: FileKey | null): Promise<StoredPage> {
    return this.#bucket.list(after);
  }

  /** First the tails, then what the store itself calls uploads, of which it tells no size. */
  async listUploads(after: string | null): Promise<StoredPage> {
    if (after === null || after.startsWith('t')) {
      const { files, next } = await this.#bucket.listTails(after === null ? null : after.slice(1));
      return { files, next: next === null ? 'u' : `t${next}` };
    }
    const marker = after.slice(1);
    const { uploads, next } = await this.#bucket.listUploads(marker === '' ? null : marker);
    const files = uploads.map(({ key, startedAt }) => ({ key, size: 0, modifiedAt: startedAt }));
    return { files, next: next === null ? null : `u${next}` };
  }

  stop(): Promise<void> {
    return this.#client.stop();
  }

  async #finish(key: FileKey, state: S3State): Promise<void> {
    const { uploadId, isComplete, remainder, etags } = state;
    if (isComplete && uploadId === null) {
      // Put as a whole already; that it is there is all that is left to be seen.
      if ((await this.size(key)) === null) throw new NotInStoreError(`${this.description} does not have this file`);
      return;
    }
    if (isComplete || remainder === 0) {
      // An upload without parts cannot be ended: an empty file is put.
      if (uploadId !== null && etags.length > 0) return this.#bucket.complete(key, uploadId, etags);
      await this.#bucket.put(key, Buffer.alloc(0));
      if (uploadId !== null) await this.#bucket.abortUpload(key, uploadId);
      return;
    }
    const reservation = await this.#partBuffers.take(null);
    try {
      await this.#finishWithRemainder(key, state);
    } finally {
      reservation.release();
    }
  }

  async #finishWithRemainder(key: FileKey, { uploadId, etags, remainder, remainderName }: S3State): Promise<void> {
    const body = await this.#bucket.readRemainder(key, remainderName!, remainder);
    if (uploadId === null) {
      await this.#bucket.put(key, body);
      return;
    }
    const last = await this.#bucket.putPart(key, { uploadId, part: etags.length + 1 }, body);
    await this.#bucket.complete(key, uploadId, [...etags, last]);
  }

  #uploadIdOf(state: UploadState): string | null {
    try {
      return readState(state).uploadId;
    } catch (error) {
      // Of another store, or never begun: there is nothing of it here.
      if (error instanceof NotInStoreError) return null;
      throw error;
    }
  }
}
