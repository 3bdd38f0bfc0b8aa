import { KlatchError } from '../errors.ts';
import type { Log } from '../log.ts';
import { CommitUnknownError } from '../storage/db/database-error.ts';
import { recordUploadProgress } from '../storage/files/files.ts';
import type { Pool } from '../storage/db/pool.ts';
import type { FileKey, UploadProgress } from './store.ts';

/** The least time between two writes for one upload. */
const MIN_WRITE_INTERVAL_MS = 1_000;

/**
 * Writes to the database how many bytes of an upload are stored safely. Runs one write at a time, and writes only the
 * newest progress, so a later write makes up for a failed one. Calls `onSuperseded` if the row differs from this
 * writer's last write: another node writes to the upload, or the upload was removed.
 */
export class ProgressWriter {
  readonly #deps: { readonly pool: Pool; readonly log: Log };
  readonly #id: FileKey;
  readonly #onSuperseded: (error: Error) => void;
  /**
   * The least and the greatest value that `received` may have in the row. They differ after a commit whose outcome is
   * unknown.
   */
  #minRowReceived: number;
  #maxRowReceived: number;
  #latestReportedProgress: UploadProgress | null = null;
  #runningWrite: Promise<void> | null = null;
  #lastWriteStartedAt = performance.now();

  constructor(
    deps: { readonly pool: Pool; readonly log: Log },
    upload: { id: FileKey; received: number },
    onSuperseded: (error: Error) => void,
  ) {
    this.#deps = deps;
    this.#id = upload.id;
    this.#minRowReceived = this.#maxRowReceived = upload.received;
    this.#onSuperseded = onSuperseded;
  }

  /**
   * Records up to where the upload is stored safely. Writes that to the row, unless a write is running or the last one
   * began less than a second ago.
   */
  recordAndWriteIfDue(progress: UploadProgress): void {
    this.#latestReportedProgress = progress;
    if (this.#runningWrite !== null || performance.now() - this.#lastWriteStartedAt < MIN_WRITE_INTERVAL_MS) return;
    this.#runningWrite = this.#write(progress)
      .catch((error: unknown) => this.#deps.log.debug('the progress of an upload could not be noted yet', { error }))
      .finally(() => (this.#runningWrite = null));
  }

  /** The last recorded progress, written or not. */
  get latestReportedProgress(): UploadProgress | null {
    return this.#latestReportedProgress;
  }

  /** Resolves when no write is in progress. */
  async waitUntilIdle(): Promise<void> {
    await this.#runningWrite;
  }

  /** Waits for the running write, and then writes this progress. Rejects when this write fails. */
  async flush(progress: UploadProgress): Promise<void> {
    this.#latestReportedProgress = progress;
    await this.#runningWrite;
    await this.#write(progress);
  }

  async #write({ receivedBytes: received, state }: UploadProgress): Promise<void> {
    this.#lastWriteStartedAt = performance.now();
    const rowUpdate = {
      minRowReceived: this.#minRowReceived,
      maxRowReceived: this.#maxRowReceived,
      received,
      upload: state,
    };
    let isRowUpdated: boolean;
    try {
      isRowUpdated = await this.#deps.pool.run((sql) => recordUploadProgress(sql, this.#id, rowUpdate));
    } catch (error) {
      if (error instanceof CommitUnknownError) this.#maxRowReceived = Math.max(this.#maxRowReceived, received);
      throw error;
    }
    if (isRowUpdated) {
      this.#minRowReceived = this.#maxRowReceived = received;
      return;
    }
    const error = new KlatchError('upload_conflict');
    this.#onSuperseded(error);
    throw error;
  }
}
