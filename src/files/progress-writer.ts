import { KlatchError } from '../errors.ts';
import type { Log } from '../log.ts';
import { CommitUnknownError } from '../storage/db/database-error.ts';
import { noteProgress } from '../storage/files/files.ts';
import type { Pool } from '../storage/db/pool.ts';
import type { FileKey, Progress } from './store.ts';

/** Between two notes of one upload. */
const WRITE_INTERVAL_MS = 1_000;

/**
 * Writes down how far an upload is safe, one note at a time and the newest alone. A note that fails is made up for by the
 * next one; that it fits no more, since another node writes or the upload was given up, is told to `onSuperseded`.
 */
export class ProgressWriter {
  readonly #deps: { readonly pool: Pool; readonly log: Log };
  readonly #id: FileKey;
  readonly #onSuperseded: (error: Error) => void;
  /** Where the row is; between the two, where the answer to a note was lost. */
  #from: number;
  #to: number;
  #latest: Progress | null = null;
  #writing: Promise<void> | null = null;
  #writtenAt = performance.now();

  constructor(
    deps: { readonly pool: Pool; readonly log: Log },
    upload: { id: FileKey; received: number },
    onSuperseded: (error: Error) => void,
  ) {
    this.#deps = deps;
    this.#id = upload.id;
    this.#from = this.#to = upload.received;
    this.#onSuperseded = onSuperseded;
  }

  /** The upload is safe up to here. */
  record(progress: Progress): void {
    this.#latest = progress;
    if (this.#writing !== null || performance.now() - this.#writtenAt < WRITE_INTERVAL_MS) return;
    this.#writing = this.#write(progress)
      .catch((error: unknown) => this.#deps.log.debug('the progress of an upload could not be noted yet', { error }))
      .finally(() => (this.#writing = null));
  }

  /** What was told last, whether it is written down or not. */
  get latest(): Progress | null {
    return this.#latest;
  }

  /** Resolves when no note is on its way. */
  async idle(): Promise<void> {
    await this.#writing;
  }

  /** Writes this down now. Rejects when that fails. */
  async flush(progress: Progress): Promise<void> {
    this.#latest = progress;
    await this.#writing;
    await this.#write(progress);
  }

  async #write({ received, state }: Progress): Promise<void> {
    this.#writtenAt = performance.now();
    const written = { from: this.#from, to: this.#to, received, upload: state };
    let isCurrent: boolean;
    try {
      isCurrent = await this.#deps.pool.run((sql) => noteProgress(sql, this.#id, written));
    } catch (error) {
      if (error instanceof CommitUnknownError) this.#to = Math.max(this.#to, received);
      throw error;
    }
    if (isCurrent) {
      this.#from = this.#to = received;
      return;
    }
    const error = new KlatchError('upload_conflict');
    this.#onSuperseded(error);
    throw error;
  }
}
