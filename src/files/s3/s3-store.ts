import type { Readable } from 'node:stream';
import type { S3Config } from '../../config/services.ts';
import { PartBufferPool } from '../part-buffer-pool.ts';
import { appendToS3 } from './s3-append.ts';
import { S3Bucket } from './s3-bucket.ts';
import { S3Client, type S3Bounds } from './s3-client.ts';
import { newUploadState, partBytesFor, parseProgress, parseUploadState, type S3UploadState } from './s3-state.ts';
import {
  checkFileKey,
  MAX_STORE_ID_BYTES,
  NotInStoreError,
  STORE_ID_KEY,
  type AppendSource,
  type ByteRange,
  type FileKey,
  type FileStore,
  type UploadProgress,
  type StoredPage,
  type UploadState,
} from '../store.ts';

/** The most multipart uploads of one file that one call aborts; crashes do not leave more. */
const MAX_ABORTED_UPLOADS_PER_FILE = 100;

/**
 * Stores files as objects in an S3 bucket. A small file is uploaded in one request, a larger one in several parts,
 * which S3 combines.
 */
export class S3Store implements FileStore {
  readonly description: string;
  readonly #client: S3Client;
  readonly #bucket: S3Bucket;
  readonly #partBytes: number;
  readonly #partBuffers: PartBufferPool;
  readonly #redirectsDownloads: boolean;

  constructor(config: S3Config, options: { maxFileBytes: number; bounds?: S3Bounds; reservationTimeoutMs?: number }) {
    this.#client = new S3Client(config, options.bounds);
    this.description = this.#client.description;
    this.#bucket = new S3Bucket(this.#client);
    this.#partBytes = partBytesFor(options.maxFileBytes);
    this.#partBuffers = new PartBufferPool(this.#partBytes, options.reservationTimeoutMs);
    this.#redirectsDownloads = config.downloads === 'redirect';
  }

  checkUsable(): Promise<void> {
    return this.#bucket.checkAccess();
  }

  readStoreId(): Promise<string | null> {
    return this.#bucket.readText(STORE_ID_KEY, MAX_STORE_ID_BYTES);
  }

  async writeStoreId(id: string): Promise<void> {
    await this.#bucket.put(STORE_ID_KEY, Buffer.from(`${id}\n`));
  }

  async prepareStoreForUpload(key: FileKey): Promise<UploadState> {
    checkFileKey(key);
    return { ...newUploadState(this.#partBytes) };
  }

  async append(key: FileKey, progress: UploadProgress, source: AppendSource): Promise<UploadProgress> {
    checkFileKey(key);
    const state = parseProgress(progress);
    if (state.isComplete) throw new NotInStoreError('the upload has had its last bytes');
    return appendToS3({ bucket: this.#bucket, partBuffers: this.#partBuffers, key }, state, source);
  }

  async finish(key: FileKey, progress: UploadProgress): Promise<void> {
    checkFileKey(key);
    const state = parseProgress(progress);
    try {
      await this.#finish(key, state);
    } catch (error) {
      // S3 does not know an upload any more after it was completed. If the file has the right size, an earlier call has
      // completed it.
      if (!(error instanceof NotInStoreError) || (await this.size(key)) !== progress.receivedBytes) throw error;
    }
    if (state.hasRemainder) await this.#bucket.removeRemainders(key, null);
  }

  async removeUploadAndFile(key: FileKey, state: UploadState | null): Promise<void> {
    checkFileKey(key);
    const knownUploadId = state === null ? null : this.#uploadIdOf(state);
    if (knownUploadId !== null) await this.#bucket.abortUpload(key, knownUploadId);
    await this.removeIncompleteUpload(key);
    await this.#bucket.remove(key);
  }

  async removeIncompleteUpload(key: FileKey): Promise<void> {
    checkFileKey(key);
    // Also finds a multipart upload whose id is in no row, because the process was killed just after it began the
    // upload.
    const multipartUploads = await this.#bucket.uploadsOf(key);
    for (const { uploadId } of multipartUploads.slice(0, MAX_ABORTED_UPLOADS_PER_FILE))
      await this.#bucket.abortUpload(key, uploadId);
    await this.#bucket.removeRemainders(key, null);
  }

  async read(key: FileKey, range: ByteRange | null): Promise<Readable> {
    checkFileKey(key);
    return this.#bucket.read(key, range);
  }

  async downloadUrl(
    key: FileKey,
    options: { forMs: number; headers: Readonly<Record<string, string>> },
  ): Promise<string | null> {
    checkFileKey(key);
    return this.#redirectsDownloads ? this.#client.signDownloadUrl(key, options) : null;
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

  /** Lists the remainders of uploads first, and then the multipart uploads, whose sizes S3 does not list. */
  async listUploads(after: string | null): Promise<StoredPage> {
    if (after === null || after.startsWith('t')) {
      const { files, next } = await this.#bucket.listFileKeysOfRemainders(after === null ? null : after.slice(1));
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

  async #finish(key: FileKey, state: S3UploadState): Promise<void> {
    const { uploadId, isComplete, remainder, etags } = state;
    if (isComplete && uploadId === null) {
      // The file was stored in one request: only its existence is checked.
      if ((await this.size(key)) === null) throw new NotInStoreError(`${this.description} does not have this file`);
      return;
    }
    if (isComplete || remainder === 0) {
      // S3 cannot complete a multipart upload without parts, so an empty file is stored instead.
      if (uploadId !== null && etags.length > 0) return this.#bucket.completeUpload(key, uploadId, etags);
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

  async #finishWithRemainder(
    key: FileKey,
    { uploadId, etags, remainder, remainderName }: S3UploadState,
  ): Promise<void> {
    const body = await this.#bucket.readRemainder(key, remainderName!, remainder);
    if (uploadId === null) {
      await this.#bucket.put(key, body);
      return;
    }
    const lastEtag = await this.#bucket.putPart(key, { uploadId, part: etags.length + 1 }, body);
    await this.#bucket.completeUpload(key, uploadId, [...etags, lastEtag]);
  }

  #uploadIdOf(state: UploadState): string | null {
    try {
      return parseUploadState(state).uploadId;
    } catch (error) {
      // The state has the form of another kind of store: this store has no multipart upload of it.
      if (error instanceof NotInStoreError) return null;
      throw error;
    }
  }
}
