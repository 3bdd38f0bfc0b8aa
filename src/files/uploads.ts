import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import { KlatchError } from '../errors.ts';
import type { Attachment } from '../model/attachment.ts';
import type { AccountId } from '../model/ids.ts';
import { findUploadOwner, type Uploader } from '../storage/files/upload-owner.ts';
import { failedUploadOutcome, type FileTransferCounts, type UploadOutcome } from './file-transfer-counts.ts';
import { MIN_UPLOAD_AND_DOWNLOAD_THROUGHPUT, type UploadStream } from './upload-stream.ts';
import { sanitizeFileName } from './sanitize-name.ts';
import {
  completeUpload,
  discardUnattachedFile,
  discardSafely,
  openUpload,
  receiveBytes,
  type UploadDeps,
} from './upload-lifecycle.ts';
import { UploadLimiter, type UploadPermit } from './upload-limiter.ts';

/** A file that one request uploads as a whole. */
interface NewFile extends Uploader {
  /** The name as the client gave it; `storeFile` sanitizes it. */
  readonly name: string;
  /** The length in bytes that the request announces; the file may not exceed it. Null: unknown. */
  readonly announcedBytes: number | null;
  /**
   * Returns the bytes of the file. Called once, when the upload gets a slot; no byte is read before. A failed upload
   * does not destroy the returned stream.
   */
  readonly bytes: () => Readable;
  /** When this signal is aborted, the upload is aborted with the signal's reason. */
  readonly signal?: AbortSignal;
}

/**
 * What the work of one upload gets: a signal that aborts it, and a callback to which it passes its stream, so that the
 * upload's speed is measured.
 */
export interface UploadControl {
  readonly signal: AbortSignal;
  readonly onStream: (stream: UploadStream) => void;
}

/**
 * Creates the id of a new file, which is also its key in the store. It does not begin with a dash, since commands would
 * take it for an option.
 */
export function newFileId(): string {
  for (;;) {
    const id = randomBytes(16).toString('base64url');
    if (!id.startsWith('-')) return id;
  }
}

/** Runs all uploads into the store: a bounded number at once, in total and per account. */
export class Uploads {
  readonly deps: UploadDeps;
  readonly #limiter: UploadLimiter;
  readonly #stopAbortController = new AbortController();
  readonly #running = new Set<Promise<unknown>>();
  #isStopping = false;

  constructor(deps: Omit<UploadDeps, 'bounds'> & Partial<Pick<UploadDeps, 'bounds'>>) {
    this.deps = { bounds: MIN_UPLOAD_AND_DOWNLOAD_THROUGHPUT, ...deps };
    const { concurrentUploads: total, concurrentUploadsPerUser: perOwner } = deps.limits;
    this.#limiter = new UploadLimiter({ total, perOwner });
  }

  get counts(): FileTransferCounts {
    return this.deps.counts;
  }

  get running(): number {
    return this.#limiter.running;
  }

  /**
   * Checks the store, and logs an error for the administrator if it is unusable. Does not throw, since messages do not
   * need the store.
   */
  checkStoreAndLogUnusable(): void {
    const { store, log } = this.deps;
    store.checkUsable().catch((error: unknown) => log.error('the store of files cannot be used', { error }));
  }

  /**
   * Stores a file, which no message has yet. A failed upload leaves no data. Rejects with `too_large`,
   * `storage_quota_exceeded`, `too_many_uploads`, `quota_exceeded`, `request_timeout`, `stopping`, SourceAbortedError,
   * and with the errors of store and database.
   */
  async storeFile(file: NewFile): Promise<Attachment> {
    return this.runLimitedAndCounted(file, async ({ signal: stop, onStream }) => {
      const { accountId, announcedBytes } = file;
      const name = sanitizeFileName(file.name);
      const upload = await openUpload(this.deps, { id: newFileId(), ownerId: accountId, name, announcedBytes });
      const { id } = upload;
      try {
        const signal = file.signal === undefined ? stop : AbortSignal.any([stop, file.signal]);
        const source = { bytes: file.bytes(), isLast: true, isResumable: false, signal, onStream };
        const { progress, firstBytes: head } = await receiveBytes(this.deps, upload, source);
        const typeAndSize = await completeUpload(this.deps, { id, progress }, head);
        return { outcome: 'stored', result: { id, name, ...typeAndSize } };
      } catch (error) {
        await discardSafely(this.deps, id);
        throw error;
      }
    });
  }

  /** Deletes a file unless a message has it. Never rejects: after a failure the next sweep deletes the file. */
  async discardIfUnattached(id: string): Promise<void> {
    await discardSafely(this.deps, id);
  }

  /** Deletes this account's file unless a message has it; false: a message has it, or the account has no such file. */
  async discardOwnIfUnattached(id: string, accountId: AccountId): Promise<boolean> {
    return discardUnattachedFile(this.deps, id, accountId);
  }

  /** Takes a slot for the upload, runs `work`, and counts its outcome. Throws `too_many_uploads` and `stopping`. */
  async runLimitedAndCounted<Result>(
    uploader: Uploader,
    work: (control: UploadControl) => Promise<{ outcome: UploadOutcome; result: Result }>,
  ): Promise<Result> {
    const { uploads } = this.deps.counts;
    let permit: UploadPermit | null = null;
    try {
      if (this.#isStopping) throw new KlatchError('stopping');
      permit = await this.#limiter.take(await this.deps.pool.run((sql) => findUploadOwner(sql, uploader)));
      if (this.#isStopping) throw new KlatchError('stopping');
      const signal = AbortSignal.any([this.#stopAbortController.signal, permit.signal]);
      const { outcome, result } = await this.#trackRunning(work({ signal, onStream: permit.measureSpeedOf }));
      uploads[outcome] += 1;
      return result;
    } catch (error) {
      uploads[failedUploadOutcome(error)] += 1;
      throw error;
    } finally {
      if (permit !== null) this.#limiter.release(permit);
    }
  }

  /**
   * Accepts no new uploads, gives the running ones `timeoutMs` to end, and then aborts the rest. Resolves when none is
   * left. Idempotent.
   */
  async stop(timeoutMs: number): Promise<void> {
    this.#isStopping = true;
    const abortTimer = setTimeout(() => this.#stopAbortController.abort(new KlatchError('stopping')), timeoutMs);
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
    clearTimeout(abortTimer);
  }

  async #trackRunning<Result>(work: Promise<Result>): Promise<Result> {
    this.#running.add(work);
    try {
      return await work;
    } finally {
      this.#running.delete(work);
    }
  }
}
