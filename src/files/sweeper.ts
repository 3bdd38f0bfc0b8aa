import type { Log } from '../log.ts';
import { renewJobLock, takeFreeJobLock } from '../storage/retention/job-locks.ts';
import {
  deleteRowReleasingUsage,
  listRemovedFiles,
  markStaleUnattachedRemoved,
  postponeRemoval,
  type FileRow,
} from '../storage/files/files.ts';
import type { Pool } from '../storage/db/pool.ts';
import { runBatchesCollectingPartialFailures } from './run-in-batches.ts';
import type { FileStore } from './store.ts';

/** The interval of the sweeps: a removed file is deleted from the store within about a minute. */
const SWEEP_INTERVAL_MS = 60_000;
/**
 * How long a sweep holds its job lock; each page extends the lock by as much. It is shorter than the interval of the
 * sweeps. If two nodes sweep at once, that does no harm: every step may be repeated.
 */
const JOB_LOCK_MS = 50_000;
const PAGE_SIZE = 200;
/** The most pages of one sweep; the next sweep handles the rest. */
const MAX_PAGES_PER_SWEEP = 100;

interface FileSweeperDeps {
  readonly pool: Pool;
  readonly store: FileStore;
  /** The name of this node in the job lock. */
  readonly nodeName: string;
  /** A file that no message has, and an upload without progress, are deleted after this time. */
  readonly orphanRetentionMs: number;
  readonly log: Log;
}

/**
 * Deletes files that are no longer used: those of deleted messages, those that no message ever had, and uploads without
 * progress. Deletes each file before its row, so that no file stays in the store without a row.
 */
export class FileSweeper {
  readonly #deps: FileSweeperDeps;
  #timer: NodeJS.Timeout | null = null;
  #runningSweep: Promise<unknown> | null = null;
  #isStopping = false;
  #isFailureLogged = false;

  constructor(deps: FileSweeperDeps) {
    this.#deps = deps;
  }

  /** Starts the timer. The first sweep begins after one interval, since nothing waits for it. */
  start(): void {
    this.#timer ??= setInterval(() => {
      this.#runningSweep ??= this.sweep().finally(() => (this.#runningSweep = null));
    }, SWEEP_INTERVAL_MS);
  }

  /** Resolves when the sweep's current page has ended. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#runningSweep;
  }

  /**
   * Runs one sweep, and returns the number of deleted files. Null: another node is sweeping, or the store or the
   * database is unavailable.
   */
  async sweep(): Promise<number | null> {
    const { pool, nodeName: node, log } = this.#deps;
    try {
      if (!(await pool.run((sql) => takeFreeJobLock(sql, 'files', node, JOB_LOCK_MS)))) return null;
      const { removed, failures } = await this.#sweepPages();
      if (failures.length > 0) this.#logFirstFailure(failures[0], failures.length);
      else if (this.#isFailureLogged) {
        log.info('files that are to go are taken out of the store again');
        this.#isFailureLogged = false;
      }
      if (removed > 0) log.debug('took files out of the store', { removed });
      return removed;
    } catch (error) {
      this.#logFirstFailure(error);
      return null;
    }
  }

  /**
   * Logs only the first failure of an outage, since every sweep would log it again. `failedFileCount`: how many files
   * could not be deleted; undefined: all.
   */
  #logFirstFailure(error: unknown, failedFileCount?: number): void {
    const { log } = this.#deps;
    if (!this.#isFailureLogged)
      log.warn('files that are to go stay in the store until the next sweep', { error, files: failedFileCount });
    this.#isFailureLogged = true;
  }

  async #sweepPages(): Promise<{ removed: number; failures: readonly unknown[] }> {
    const { pool, nodeName: node, orphanRetentionMs } = this.#deps;
    let removedCount = 0;
    const failures: unknown[] = [];
    for (let page = 0; page < MAX_PAGES_PER_SWEEP && !this.#isStopping; page += 1) {
      if (!(await pool.run((sql) => renewJobLock(sql, 'files', node, JOB_LOCK_MS)))) break;
      const cutoff = new Date(Date.now() - orphanRetentionMs);
      await pool.run((sql) => markStaleUnattachedRemoved(sql, cutoff, PAGE_SIZE));
      const files = await pool.run((sql) => listRemovedFiles(sql, PAGE_SIZE));
      const pageFailures = await runBatchesCollectingPartialFailures(files, (file) => this.#removeFile(file));
      failures.push(...pageFailures);
      removedCount += files.length - pageFailures.length;
      if (files.length < PAGE_SIZE || pageFailures.length === files.length) break;
    }
    if (removedCount === 0 && failures.length > 0) throw failures[0];
    return { removed: removedCount, failures };
  }

  async #removeFile({ id, upload }: FileRow): Promise<void> {
    const { pool, store } = this.#deps;
    try {
      // If the row has no state of an upload, the store has only the complete file.
      if (upload === null) await store.remove(id);
      else await store.removeUploadAndFile(id, upload);
    } catch (error) {
      await pool.run((sql) => postponeRemoval(sql, id));
      throw error;
    }
    await pool.transaction((tx) => deleteRowReleasingUsage(tx, id));
  }
}
