import { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { KlatchError } from '../errors.ts';
import type { AccountId } from '../model/ids.ts';
import { findFile, type FileRow } from '../storage/files/files.ts';
import type { UploadStream } from './upload-stream.ts';
import { sanitizeFileName } from './sanitize-name.ts';
import {
  beginInStore,
  abortIfRemoved,
  completeUpload,
  discardSafely,
  openUpload,
  receiveBytes,
  requireNoBytesForWholeUpload,
} from './upload-lifecycle.ts';
import { NotInStoreError, type UploadProgress } from './store.ts';
import { newFileId, type Uploads, type UploadControl } from './uploads.ts';

/**
 * A request that has sent nothing for this time counts as stalled, and a newer request of the same upload replaces it.
 * Often the network of its client has changed.
 */
const TAKEOVER_AFTER_SILENCE_MS = 5_000;
/** How long a newer request of an upload waits until the stalled request has stored its bytes. */
const TAKEOVER_TIMEOUT_MS = 5_000;

/** The state of a resumable upload. */
export interface UploadStatus {
  readonly id: string;
  readonly name: string;
  readonly size: number;
  /** Number of bytes that are stored safely. The client continues from this offset. */
  readonly offset: number;
  /** The time when the upload expires unless more bytes come; null: the upload is complete. */
  readonly expiresAt: Date | null;
}

/** The part of an upload that one request sends. */
interface UploadChunk {
  /** The offset at which the part begins, as the client gives it. */
  readonly offset: number;
  /** The length of the part in bytes, as the request announces it; null: unknown. */
  readonly announcedChunkBytes: number | null;
  /** Returns the bytes of the part. Called at most once, when the part is accepted. */
  readonly bytes: () => Readable;
}

/** The one request that writes to an upload. */
interface UploadWriter {
  readonly abortController: AbortController;
  readonly ended: Promise<void>;
  readonly markWriterEnded: () => void;
  receivingStream: UploadStream | null;
}

/**
 * Uploads that come in several requests and continue after a broken connection or a restart. The part of the tus
 * protocol without its HTTP headers.
 */
export class ResumableUploads {
  readonly #uploads: Uploads;
  readonly #expireAfterMs: number;
  readonly #writers = new Map<string, UploadWriter>();

  constructor(uploads: Uploads, options: { expireAfterMs: number }) {
    this.#uploads = uploads;
    this.#expireAfterMs = options.expireAfterMs;
  }

  /**
   * Begins an upload of `size` bytes. Throws `too_large`, `storage_quota_exceeded`, `quota_exceeded`,
   * `too_many_uploads`.
   */
  async create(upload: { accountId: AccountId; name: string; size: number }): Promise<UploadStatus> {
    const { accountId, size } = upload;
    const id = newFileId();
    const name = sanitizeFileName(upload.name);
    await openUpload(this.#uploads.deps, { id, ownerId: accountId, name, announcedBytes: size, isResumable: true });
    if (size > 0) return this.#toStatus(await this.#requireOwnUnexpiredFile(id, accountId));
    return this.append(id, accountId, { offset: 0, announcedChunkBytes: 0, bytes: () => Readable.from([]) });
  }

  /**
   * Ends a stalled request of an upload of this account, and then returns the upload's state. Throws `file_not_found`
   * and `upload_expired`.
   */
  async endStalledAndGetStatus(id: string, accountId: AccountId): Promise<UploadStatus> {
    const holder = this.#writers.get(id);
    // The client wants to continue. A stalled request first stores the bytes that it has received, so that the offset
    // includes them.
    if (holder !== undefined && hasStalled(holder)) await this.#endWriter(holder, new KlatchError('upload_locked'));
    const file = await this.#requireOwnResumablyUploadedFile(id, accountId);
    const isComplete = file.state === 'uploading' && file.size > 0 && file.received === file.size;
    // All bytes are stored, but a server was killed before it completed the upload. The client has nothing left to
    // send, so the upload is completed here.
    if (isComplete && !this.#writers.has(id)) {
      return this.append(id, accountId, { offset: file.size, announcedChunkBytes: 0, bytes: () => Readable.from([]) });
    }
    return this.#toStatus(file);
  }

  /**
   * Stores a part. Throws `upload_locked` while another request sends a part, and `upload_conflict` if the part does
   * not begin at the upload's offset. Also throws the errors of `endStalledAndGetStatus` and `Uploads.storeFile`. Bytes
   * that arrived stay stored even if the call fails.
   */
  async append(id: string, accountId: AccountId, chunk: UploadChunk): Promise<UploadStatus> {
    return this.#uploads.runLimitedAndCounted({ accountId, conversationId: null }, async (control) => {
      const writer = await this.#acquireUnlessActiveWriter(id);
      try {
        const file = await this.#requireOwnResumablyUploadedFile(id, accountId);
        const status = await this.#appendChunk(file, chunk, { writer, control }).catch(async (error: unknown) => {
          await abortIfRemoved(this.#uploads.deps, id);
          throw error;
        });
        return { outcome: status.expiresAt === null ? 'stored' : 'paused', result: status };
      } catch (error) {
        if (!(error instanceof NotInStoreError)) throw error;
        await discardSafely(this.#uploads.deps, id);
        throw new KlatchError('upload_expired', { cause: error });
      } finally {
        this.#writers.delete(id);
        writer.markWriterEnded();
      }
    });
  }

  /**
   * Aborts and removes an upload, or removes its complete file. Throws `upload_expired` and `file_not_found`, the
   * latter also when a message has the file.
   */
  async remove(id: string, accountId: AccountId): Promise<void> {
    await this.#requireOwnUnexpiredFile(id, accountId);
    const holder = this.#writers.get(id);
    if (holder !== undefined) await this.#endWriter(holder, new KlatchError('upload_expired'));
    if (await this.#uploads.discardOwnIfUnattached(id, accountId)) return;
    // The row may have gone since it was found: then this call throws the fitting error.
    await this.#requireOwnUnexpiredFile(id, accountId);
    const sentence = 'A message has this file, so it was not removed: delete the message, and the file goes with it';
    throw new KlatchError('file_not_found', { sentence });
  }

  /** Aborts all running requests. Their clients can continue later from the stored bytes. */
  abortWriters(): void {
    for (const { abortController } of this.#writers.values()) abortController.abort(new KlatchError('stopping'));
  }

  async #appendChunk(
    file: FileRow,
    chunk: UploadChunk,
    writerAndControl: { writer: UploadWriter; control: UploadControl },
  ): Promise<UploadStatus> {
    const { deps } = this.#uploads;
    const { id, size } = file;
    const remainingBytes = size - file.received;
    if (chunk.offset !== file.received) throw new KlatchError('upload_conflict');
    if ((chunk.announcedChunkBytes ?? 0) > remainingBytes) {
      const sentence = `The part has ${chunk.announcedChunkBytes} bytes, but the upload lacks only ${remainingBytes} of its ${size}: send those`;
      throw new KlatchError('too_large', { sentence });
    }
    const signal = AbortSignal.any([writerAndControl.control.signal, writerAndControl.writer.abortController.signal]);
    const onStream = (stream: UploadStream): void => {
      writerAndControl.writer.receivingStream = stream;
      writerAndControl.control.onStream(stream);
    };
    const isComplete = file.state === 'stored' || (remainingBytes === 0 && size > 0);
    // If the request announces no length, only its body shows whether it has bytes beyond the end of the upload.
    if (isComplete && chunk.announcedChunkBytes === null) {
      await requireNoBytesForWholeUpload(deps, { bytes: chunk.bytes(), size, signal, onStream });
    }
    if (file.state === 'stored') return this.#toStatus(file);
    const startProgress: UploadProgress =
      file.upload === null ? await beginInStore(deps, id) : { receivedBytes: file.received, state: file.upload };
    if (isComplete) {
      await completeUpload(deps, { id, progress: startProgress }, null);
      return this.#toStatus({ ...file, state: 'stored' });
    }
    const { progress, firstBytes: head } = await receiveBytes(
      deps,
      { id, size, progress: startProgress },
      {
        bytes: chunk.bytes(),
        isLast: chunk.announcedChunkBytes === remainingBytes,
        isResumable: true,
        signal,
        onStream,
      },
    );
    if (progress.receivedBytes < size)
      return this.#toStatus({ ...file, received: progress.receivedBytes, updatedAt: new Date() });
    await completeUpload(deps, { id, progress }, startProgress.receivedBytes === 0 ? head : null);
    return this.#toStatus({ ...file, received: size, state: 'stored' });
  }

  /**
   * The row of this account's file or unexpired upload, if it was begun as a resumable upload. Throws `file_not_found`
   * for an upload of another kind: only the request that began it may write to it.
   */
  async #requireOwnResumablyUploadedFile(id: string, accountId: AccountId): Promise<FileRow> {
    const file = await this.#requireOwnUnexpiredFile(id, accountId);
    if (!file.isResumable) throw new KlatchError('file_not_found');
    // The file was complete, but the store has lost its bytes. The error makes the client upload the file again.
    if (file.state === 'lost') throw new KlatchError('upload_expired');
    return file;
  }

  /** The row of a file or an unexpired upload of this account. Throws `file_not_found` if there is none. */
  async #requireOwnUnexpiredFile(id: string, accountId: AccountId): Promise<FileRow> {
    const file = await this.#uploads.deps.pool.run((sql) => findFile(sql, id));
    if (file === null || file.ownerId !== accountId) throw new KlatchError('file_not_found');
    const isExpired = file.state === 'uploading' && this.#expiryOf(file).getTime() <= Date.now();
    if (file.state === 'removed' || isExpired) throw new KlatchError('upload_expired');
    return file;
  }

  #toStatus(file: FileRow): UploadStatus {
    const { id, name, size, received } = file;
    return { id, name, size, offset: received, expiresAt: file.state === 'stored' ? null : this.#expiryOf(file) };
  }

  #expiryOf({ updatedAt }: FileRow): Date {
    return new Date(updatedAt.getTime() + this.#expireAfterMs);
  }

  /**
   * Makes a request the only writer of an upload. Ends a writer that has stalled; throws `upload_locked` if the writer
   * has not.
   */
  async #acquireUnlessActiveWriter(id: string): Promise<UploadWriter> {
    const holder = this.#writers.get(id);
    if (holder !== undefined && hasStalled(holder)) await this.#endWriter(holder, new KlatchError('upload_locked'));
    if (this.#writers.has(id)) throw new KlatchError('upload_locked');
    const { promise: ended, resolve: markWriterEnded } = Promise.withResolvers<void>();
    const writer: UploadWriter = {
      abortController: new AbortController(),
      ended,
      markWriterEnded,
      receivingStream: null,
    };
    this.#writers.set(id, writer);
    return writer;
  }

  async #endWriter({ abortController, ended }: UploadWriter, reason: Error): Promise<void> {
    abortController.abort(reason);
    const timeoutAbortController = new AbortController();
    await Promise.race([ended, wait(TAKEOVER_TIMEOUT_MS, undefined, { signal: timeoutAbortController.signal })]);
    timeoutAbortController.abort();
  }
}

function hasStalled({ receivingStream }: UploadWriter): boolean {
  return receivingStream !== null && receivingStream.idleMs > TAKEOVER_AFTER_SILENCE_MS;
}
