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

/** What is removed is gone from the store a minute later, about. */
const SWEEP_INTERVAL_MS = 60_000;
/**
 * How long a sweep holds the lock of its job, prolonged before each page; shorter than from one sweep to the next. Two
 * sweeps at once do no harm: everything here may be done twice.
 */
const JOB_LOCK_MS = 50_000;
const PAGE_SIZE = 200;
/** Pages of one sweep; the rest waits for the next one. */
const MAX_PAGES = 100;

/** What sweeping works with. */
interface FileSweeperDeps {
  readonly pool: Pool;
  readonly store: FileStore;
  /** The name of this process among those that share the database. */
  readonly nodeName: string;
  /** How long a file may be in no message, and an upload may rest. */
  readonly orphanRetentionMs: number;
  readonly log: Log;
}

/**
 * Takes files out of the store that nobody is to have any more: those of deleted messages, those that no message took,
 * and uploads that did not go on. First the store, then the row, so that nothing is left in the store without a row.
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

  /** The first sweep is some time after the start: nothing waits for it. */
  start(): void {
    this.#timer ??= setInterval(() => {
      this.#runningSweep ??= this.sweep().finally(() => (this.#runningSweep = null));
    }, SWEEP_INTERVAL_MS);
  }

  /** Resolves when the page in hand is done. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#runningSweep;
  }

  /** One sweep: how many files are gone; null: another node does it, or the store or the database is away. */
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

  /** Told once for each time that it is away: it is tried again all the time. `files`: how many; undefined: all. */
  #logFirstFailure(error: unknown, files?: number): void {
    const { log } = this.#deps;
    if (!this.#isFailureLogged)
      log.warn('files that are to go stay in the store until the next sweep', { error, files });
    this.#isFailureLogged = true;
  }

  async #sweepPages(): Promise<{ removed: number; failures: readonly unknown[] }> {
    const { pool, nodeName: node, orphanRetentionMs } = this.#deps;
    let removed = 0;
    const failures: unknown[] = [];
    for (let page = 0; page < MAX_PAGES && !this.#isStopping; page += 1) {
      if (!(await pool.run((sql) => renewJobLock(sql, 'files', node, JOB_LOCK_MS)))) break;
      const cutoff = new Date(Date.now() - orphanRetentionMs);
      await pool.run((sql) => markStaleUnattachedRemoved(sql, cutoff, PAGE_SIZE));
      const files = await pool.run((sql) => listRemovedFiles(sql, PAGE_SIZE));
      const failed = await runBatchesCollectingPartialFailures(files, (file) => this.#removeFile(file));
      failures.push(...failed);
      removed += files.length - failed.length;
      if (files.length < PAGE_SIZE || failed.length === files.length) break;
    }
    if (removed === 0 && failures.length > 0) throw failures[0];
    return { removed, failures };
  }

  async #removeFile({ id, upload }: FileRow): Promise<void> {
    const { pool, store } = this.#deps;
    try {
      // A complete one has nothing but its file in the store.
      if (upload === null) await store.remove(id);
      else await store.abortAndRemove(id, upload);
    } catch (error) {
      await pool.run((sql) => postponeRemoval(sql, id));
      throw error;
    }
    await pool.transaction((tx) => deleteRowReleasingUsage(tx, id));
  }
}
