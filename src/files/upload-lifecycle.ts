import { IncomingMessage } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { LimitsConfig } from '../config/config.ts';
import { KlatchError } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Attachment } from '../model/attachment.ts';
import { readPictureSize, type PictureSize } from '../model/picture-size.ts';
import { DatabaseUnavailableError, CommitUnknownError } from '../storage/db/database-error.ts';
import type { UsageLimits } from '../storage/files/file-usage.ts';
import {
  deleteRowReleasingUsage,
  findFile,
  finishUpload,
  grantUploadBytes,
  insertUpload,
  markUnattachedFileRemoved,
  recordUploadProgress,
  type NewUpload,
} from '../storage/files/files.ts';
import type { Pool } from '../storage/db/pool.ts';
import type { FileTransferCounts } from './file-transfer-counts.ts';
import { UploadStream, type MinThroughput } from './upload-stream.ts';
import { ProgressWriter } from './progress-writer.ts';
import type { FileKey, FileStore, UploadProgress } from './store.ts';
import { isSafeImage, SNIFFED_BYTES, sniffType } from './media-type.ts';

export interface UploadDeps {
  readonly pool: Pool;
  readonly store: FileStore;
  readonly limits: LimitsConfig;
  readonly counts: FileTransferCounts;
  readonly bounds: MinThroughput;
  readonly log: Log;
}

/**
 * The limit of an account's incomplete uploads; twice `limits.concurrent-uploads-per-user` if that is more. Uploads
 * without a running request count too: each has a row, and data in the store.
 */
const MIN_UNFINISHED_UPLOAD_LIMIT = 100;
/**
 * An upload whose size is not announced reserves quota in steps. A step is as large as the bytes that have arrived,
 * within these bounds.
 */
const MIN_QUOTA_STEP_BYTES = 256 * 1024;
const MAX_QUOTA_STEP_BYTES = 16 * 1024 * 1024;
/**
 * The most bytes of a JPEG that are read to find its width and height. Metadata and a thumbnail come before them: a few
 * segments of at most 64 KiB each.
 */
const MAX_JPEG_HEADER_BYTES = 256 * 1024;
/**
 * The most attempts to write the row of a completely stored file. Several are made, so that a short outage of the
 * database does not lose the file.
 */
const MAX_FINISH_ROW_ATTEMPTS = 3;
const FINISH_RETRY_DELAY_MS = 500;

/** An upload and how far it has got. */
interface Upload {
  readonly id: FileKey;
  /** The total bytes of the file; null: unknown. */
  readonly size: number | null;
  readonly progress: UploadProgress;
}

/** The bytes that one request sends for an upload. */
interface UploadSource {
  readonly bytes: Readable;
  /** True: the upload ends with these bytes. */
  readonly isLast: boolean;
  /**
   * True: the last progress is written to the row even if the request fails, so that another request can continue from
   * there.
   */
  readonly isResumable: boolean;
  readonly signal: AbortSignal;
  /** Called with the stream of the upload as soon as the stream exists. */
  readonly onStream?: (flow: UploadStream) => void;
}

/** The progress of an upload, and its first bytes. */
interface ProgressAndFirstBytes {
  readonly progress: UploadProgress;
  readonly firstBytes: Buffer;
}

/**
 * Inserts the row of a file, and then begins its upload in the store. In this order the store never has data without a
 * row. Throws `too_large`, `storage_quota_exceeded` and `quota_exceeded`.
 */
export async function openUpload(deps: UploadDeps, upload: NewUpload): Promise<Upload> {
  const { pool, limits } = deps;
  const { id, announcedBytes: size } = upload;
  if (size !== null && size > limits.fileBytes) throw tooLargeError(limits);
  const maxUnfinished = Math.max(MIN_UNFINISHED_UPLOAD_LIMIT, 2 * limits.concurrentUploadsPerUser);
  const refusal = await pool.transaction((tx) =>
    insertUpload(tx, upload, { ...toUsageLimits(limits), maxUnfinishedUploads: maxUnfinished }),
  );
  if (refusal !== null) throw toQuotaError(refusal);
  try {
    return { id, size, progress: await beginInStore(deps, id) };
  } catch (error) {
    await discardSafely(deps, id);
    throw error;
  }
}

/** Begins an upload in the store, and writes the upload's state, which the store returns, to the row. */
export async function beginInStore({ pool, store }: UploadDeps, id: FileKey): Promise<UploadProgress> {
  const state = await store.prepareStoreForUpload(id);
  const isProgressRecorded = await pool.run((sql) =>
    recordUploadProgress(sql, id, { minRowReceived: 0, maxRowReceived: 0, received: 0, upload: state }),
  );
  if (!isProgressRecorded) throw new KlatchError('upload_conflict');
  return { receivedBytes: 0, state };
}

/**
 * Writes the bytes of a source to the store, and the progress to the row. Rejects with the errors of the store or the
 * source, and with `too_large`, `storage_quota_exceeded` and `request_timeout`.
 */
export async function receiveBytes(
  deps: UploadDeps,
  upload: Upload,
  source: UploadSource,
): Promise<ProgressAndFirstBytes> {
  const { store, counts, limits, bounds } = deps;
  const { id, size, progress } = upload;
  const { bytes, signal, isLast } = source;
  const maxBytes = (size ?? limits.fileBytes) - progress.receivedBytes;
  const reserveQuota = size === null ? quotaReserver(deps, upload) : null;
  const createExcessError = (): Error => (size === null ? tooLargeError(limits) : beyondAnnouncedError(size));
  const stream = new UploadStream(bytes, { maxBytes, createExcessError, reserveQuota, bounds });
  const progressWriter = new ProgressWriter(deps, { id, received: progress.receivedBytes }, (error) =>
    stream.destroy(error),
  );
  const abort = (): void => void stream.destroy(signal.reason as Error);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  source.onStream?.(stream);
  try {
    const onProgress = (durable: UploadProgress): void => progressWriter.recordAndWriteIfDue(durable);
    // Node copies each chunk of a request's body, so no other code uses its memory.
    const mayFreeChunks = bytes instanceof IncomingMessage;
    const storedProgress = await store.append(id, progress, {
      bytes: stream,
      onProgress,
      isEndOfFile: isLast,
      mayFreeChunks,
    });
    if (source.isResumable) await progressWriter.flush(storedProgress);
    return { progress: storedProgress, firstBytes: stream.firstBytes };
  } catch (error) {
    if (source.isResumable && progressWriter.latestReportedProgress !== null)
      await tryFlushProgress(deps, progressWriter);
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
    stream.destroy();
    counts.bytesReceived += stream.receivedBytes;
    await progressWriter.waitUntilIdle();
  }
}

/**
 * Reads a source that must be empty, since all `size` bytes of the upload have arrived. Rejects with `too_large` if the
 * source has a byte. Rejects like `receiveBytes` if the source fails or stalls.
 */
export async function requireNoBytesForWholeUpload(
  { bounds }: UploadDeps,
  source: Pick<UploadSource, 'bytes' | 'signal' | 'onStream'> & { readonly size: number },
): Promise<void> {
  const { bytes, signal, size } = source;
  const stream = new UploadStream(bytes, {
    maxBytes: 0,
    createExcessError: () => beyondAnnouncedError(size),
    reserveQuota: null,
    bounds,
  });
  const abort = (): void => void stream.destroy(signal.reason as Error);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  source.onStream?.(stream);
  try {
    await finished(stream.resume());
  } finally {
    signal.removeEventListener('abort', abort);
    stream.destroy();
  }
}

/**
 * Completes an upload: its file then exists, with a media type. `knownFirstBytes` null: the caller does not have them.
 */
export async function completeUpload(
  deps: UploadDeps,
  upload: Pick<Upload, 'id' | 'progress'>,
  knownFirstBytes: Buffer | null,
): Promise<Pick<Attachment, 'type' | 'size'>> {
  const { id, progress } = upload;
  await deps.store.finish(id, progress);
  const size = progress.receivedBytes;
  const firstBytes = knownFirstBytes ?? (await readFirstBytes(deps.store, id, { size, most: SNIFFED_BYTES }));
  const type = await sniffType(firstBytes);
  const picture = await pictureSizeOf(deps, { id, size, type, head: firstBytes });
  if (!(await finishRowWithRetry(deps, id, { size, type, picture }))) throw new KlatchError('upload_expired');
  return { type, size };
}

/**
 * Marks a file that no message has as removed, so that no request finds it, and deletes it from the store. If the store
 * or the database is unavailable meanwhile, the next sweep deletes it. False: there is no such file, or a message has
 * it.
 */
export async function discardUnattachedFile(
  deps: UploadDeps,
  id: FileKey,
  owner: NewUpload['ownerId'] | null = null,
): Promise<boolean> {
  const { pool, store, log } = deps;
  const file = await pool.run((sql) => markUnattachedFileRemoved(sql, id, owner));
  if (file === null) return false;
  try {
    await store.removeUploadAndFile(id, file.upload);
    await pool.transaction((tx) => deleteRowReleasingUsage(tx, id));
  } catch (error) {
    log.warn('a file that was given up is left to the next sweep', { error });
  }
  return true;
}

/**
 * Must be called after a writer has failed. If the upload was removed while the writer ran, this call removes the bytes
 * that the writer stored after that. Never rejects.
 */
export async function abortIfRemoved({ pool, store, log }: UploadDeps, id: FileKey): Promise<void> {
  try {
    const file = await pool.run((sql) => findFile(sql, id));
    if (file === null || file.state === 'removed') await store.removeUploadAndFile(id, file?.upload ?? null);
  } catch (error) {
    log.warn('what came of an upload after it was removed may stay in the store until it is checked', { error });
  }
}

/** Discards an upload whose writer failed, with all its data. Never rejects. */
export async function discardSafely(deps: UploadDeps, id: FileKey): Promise<void> {
  try {
    if (!(await discardUnattachedFile(deps, id))) await abortIfRemoved(deps, id);
  } catch (error) {
    deps.log.warn('an upload that failed is left to the next sweep', { error });
  }
}

function toUsageLimits({ storagePerUserBytes, storageTotalBytes }: LimitsConfig): UsageLimits {
  return { maxAccountBytes: storagePerUserBytes, maxTotalBytes: storageTotalBytes };
}

/**
 * Returns a function that reserves quota for an upload before its bytes are stored: a step at a time, at most up to the
 * limit for one file.
 */
function quotaReserver(deps: UploadDeps, { id, progress }: Upload): (total: number) => Promise<void> {
  const { pool, limits } = deps;
  let grantedBytes = 0;
  return async (receivedBytes) => {
    const minBytes = progress.receivedBytes + receivedBytes;
    if (minBytes <= grantedBytes) return;
    const step = Math.min(Math.max(minBytes, MIN_QUOTA_STEP_BYTES), MAX_QUOTA_STEP_BYTES);
    const wishedBytes = Math.min(minBytes + step, limits.fileBytes);
    const grantedOrRefusal = await pool.transaction((tx) =>
      grantUploadBytes(tx, id, { minBytes, wishedBytes, limits: toUsageLimits(limits) }),
    );
    if (grantedOrRefusal === null) throw new KlatchError('upload_expired');
    if (typeof grantedOrRefusal === 'string') throw toQuotaError(grantedOrRefusal);
    grantedBytes = grantedOrRefusal;
  };
}

async function tryFlushProgress(deps: UploadDeps, progressWriter: ProgressWriter): Promise<void> {
  try {
    await progressWriter.flush(progressWriter.latestReportedProgress!);
  } catch (error) {
    deps.log.debug('what arrived of an upload could not be noted; it goes on from what was noted before', { error });
  }
}

async function finishRowWithRetry(
  { pool, log }: UploadDeps,
  id: FileKey,
  file: { size: number; type: string; picture: PictureSize | null },
): Promise<boolean> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await pool.transaction((tx) => finishUpload(tx, id, file));
    } catch (error) {
      const isTransient = error instanceof DatabaseUnavailableError || error instanceof CommitUnknownError;
      if (!isTransient || attempt === MAX_FINISH_ROW_ATTEMPTS) throw error;
      log.debug('the end of an upload is noted once more', { error });
      await wait(FINISH_RETRY_DELAY_MS);
    }
  }
}

/**
 * The width and height in the header of an image; null for other files. In a JPEG they may come after metadata and a
 * thumbnail, so up to `MAX_JPEG_HEADER_BYTES` are read from the store. If that fails, the upload succeeds with a
 * picture of picture of unknown size.
 */
async function pictureSizeOf(
  { store, log }: UploadDeps,
  { id, size, type, head: firstBytes }: { id: FileKey; size: number; type: string; head: Buffer },
): Promise<PictureSize | null> {
  if (!isSafeImage(type)) return null;
  const pictureSize = readPictureSize(firstBytes);
  if (pictureSize !== null || type !== 'image/jpeg' || size <= firstBytes.length) return pictureSize;
  try {
    return readPictureSize(await readFirstBytes(store, id, { size, most: MAX_JPEG_HEADER_BYTES }));
  } catch (error) {
    log.debug('the size of a picture could not be read', { error });
    return null;
  }
}

async function readFirstBytes(
  store: FileStore,
  id: FileKey,
  { size, most: maxBytes }: { size: number; most: number },
): Promise<Buffer> {
  if (size === 0) return Buffer.alloc(0);
  const stream = await store.read(id, { start: 0, end: Math.min(size, maxBytes) - 1 });
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function tooLargeError({ fileBytes }: LimitsConfig): KlatchError {
  return new KlatchError('too_large', { sentence: `A file has at most ${fileBytes} bytes here (limits.file-size)` });
}

function beyondAnnouncedError(size: number): KlatchError {
  const sentence = `More bytes came than the ${size} that were announced: begin a new upload with the true size`;
  return new KlatchError('too_large', { sentence });
}

function toQuotaError(refusal: 'account_full' | 'all_full' | 'too_many'): KlatchError {
  if (refusal === 'too_many') {
    const sentence = 'There are as many unfinished uploads of yours as there may be: go on with them, or remove some';
    return new KlatchError('quota_exceeded', { sentence });
  }
  const sentence =
    refusal === 'account_full'
      ? 'There is no room for this file: yours take as much as they may (limits.storage-per-user); remove some first'
      : 'There is no room for this file: all files together take as much as they may (limits.storage-total); ' +
        'ask the administrator';
  return new KlatchError('storage_quota_exceeded', { sentence });
}
