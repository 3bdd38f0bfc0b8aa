import { KlatchError } from '../errors.ts';
import type { Log } from '../log.ts';
import { CommitUnknownError } from '../storage/db/database-error.ts';
import { recordUploadProgress } from '../storage/files/files.ts';
import type { Pool } from '../storage/db/pool.ts';
import type { FileKey, UploadProgress } from './store.ts';

/** Between two notes of one upload. */
const MIN_WRITE_INTERVAL_MS = 1_000;

/**
 * Writes down how far an upload is safe, one note at a time and the newest alone. A note that fails is made up for by the
 * next one; that it fits no more, since another node writes or the upload was given up, is told to `onSuperseded`.
 */
export class ProgressWriter {
  readonly #deps: { readonly pool: Pool; readonly log: Log };
  readonly #id: FileKey;
  readonly #onSuperseded: (error: Error) => void;
  /** Where the row is; between the two, where the answer to a note was lost. */
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

  /** The upload is safe up to here. */
  record(progress: UploadProgress): void {
    this.#latestReportedProgress = progress;
    if (this.#runningWrite !== null || performance.now() - this.#lastWriteStartedAt < MIN_WRITE_INTERVAL_MS) return;
    this.#runningWrite = this.#write(progress)
      .catch((error: unknown) => this.#deps.log.debug('the progress of an upload could not be noted yet', { error }))
      .finally(() => (this.#runningWrite = null));
  }

  /** What was told last, whether it is written down or not. */
  get latestReportedProgress(): UploadProgress | null {
    return this.#latestReportedProgress;
  }

  /** Resolves when no note is on its way. */
  async waitUntilIdle(): Promise<void> {
    await this.#runningWrite;
  }

  /** Writes this down now. Rejects when that fails. */
  async flush(progress: UploadProgress): Promise<void> {
    this.#latestReportedProgress = progress;
    await this.#runningWrite;
    await this.#write(progress);
  }

  async #write({ received, state }: UploadProgress): Promise<void> {
    this.#lastWriteStartedAt = performance.now();
    const written = {
      minRowReceived: this.#minRowReceived,
      maxRowReceived: this.#maxRowReceived,
      received,
      upload: state,
    };
    let isCurrent: boolean;
    try {
      isCurrent = await this.#deps.pool.run((sql) => recordUploadProgress(sql, this.#id, written));
    } catch (error) {
      if (error instanceof CommitUnknownError) this.#maxRowReceived = Math.max(this.#maxRowReceived, received);
      throw error;
    }
    if (isCurrent) {
      this.#minRowReceived = this.#maxRowReceived = received;
      return;
    }
    const error = new KlatchError('upload_conflict');
    this.#onSuperseded(error);
    throw error;
  }
}
