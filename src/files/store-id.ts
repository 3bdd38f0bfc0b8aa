import type { Log } from '../log.ts';
import type { Pool } from '../storage/db/pool.ts';
import { ensureStoreId, findStoreId, unassignNewStoreId, UNASSIGNED_STORE_ID } from '../storage/files/store-id.ts';
import { StoreUnavailableError, type FileStore } from './store.ts';

/**
 * How long the start of the server waits for a store that does not answer. After that the server starts anyway, since
 * messages do not need the store.
 */
const MAX_START_WAIT_MS = 3_000;
const RETRY_MS = 1_000;
/** The number of digits of an id that messages to people show. */
const SHOWN_ID_DIGITS = 8;

/** Thrown when the store belongs to another database, so that it does not have this database's files. */
export class StoreMismatchError extends Error {
  override readonly name = 'StoreMismatchError';
}

/** A store and its database. */
export interface StoreIdDeps {
  readonly pool: Pool;
  readonly store: FileStore;
}

/**
 * Compares the id in the store with the id in the database. Writes both at a server's first start and after a restore.
 * Rejects with StoreMismatchError if they differ, and with the errors of store and database.
 */
export async function checkStoreId({ pool, store }: StoreIdDeps): Promise<void> {
  // Reads the store before the database. Another node that starts at the same time first writes "unassigned" to the
  // database, and only then an id to the store.
  const foundBefore = await store.readStoreId();
  let expected = await pool.run(findStoreId);
  if (expected === null) {
    if (foundBefore !== null) throw new StoreMismatchError(describeMismatch(store.description, foundBefore, null)!);
    await pool.run((sql) => unassignNewStoreId(sql));
    expected = UNASSIGNED_STORE_ID;
  }
  if (expected === UNASSIGNED_STORE_ID) expected = await ensureStoreId(pool, (id) => store.writeStoreId(id));
  // Reads the store again, after the database: a node that assigns an id writes it to the store before the database.
  const mismatch = describeMismatch(store.description, await store.readStoreId(), expected);
  if (mismatch !== null) throw new StoreMismatchError(mismatch);
}

/** The message for a store with the id `found` and a database with the id `expected`; null if they match. */
export function describeMismatch(store: string, found: string | null, expected: string | null): string | null {
  if (expected === UNASSIGNED_STORE_ID || found === expected) return null;
  const begin = `${store} is not the store of this database's files: `;
  if (found === null) {
    return (
      `${begin}its store-id is missing. Mount its file system if it has one of its own. Servers on one database need ` +
      'the same folder (services.file-storage.location) or bucket (services.aws.s3). If the files are lost, ' +
      '"klatch files adopt" marks them as lost and writes the store-id again.'
    );
  }
  const databaseIdText = expected === null ? 'this database is new' : `that of this database with ${shorten(expected)}`;
  return (
    `${begin}its store-id begins with ${shorten(found)}, ${databaseIdText}. Servers on one database need the same folder ` +
    '(services.file-storage.location) or bucket (services.aws.s3), and each database one of its own. If nobody else uses ' +
    'this one, "klatch files adopt" makes it the store of this database.'
  );
}

function shorten(id: string): string {
  return id.slice(0, SHOWN_ID_DIGITS);
}

/** Compares the ids when the server starts. While the store or the database does not answer, retries every second. */
export class StoreIdCheck {
  readonly #deps: StoreIdDeps & { readonly log: Log };
  #retryTimer: NodeJS.Timeout | null = null;
  #isStopped = false;
  #hasWarned = false;

  constructor(deps: StoreIdDeps & { readonly log: Log }) {
    this.#deps = deps;
  }

  /**
   * Resolves when the ids are equal, or after MAX_START_WAIT_MS without an answer. Rejects with StoreMismatchError. The
   * comparison continues after that time: calls `onMatch` when the ids are equal, and `onMismatch` for a mismatch that
   * is found after the promise has resolved.
   */
  async start(callbacks: { onMatch: () => void; onMismatch: (error: StoreMismatchError) => void }): Promise<void> {
    let hasReturned = false;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, MAX_START_WAIT_MS);
    void this.#compareUntilAnswered(
      () => {
        callbacks.onMatch();
        resolve();
      },
      (error) => (hasReturned ? callbacks.onMismatch(error) : reject(error)),
    );
    try {
      await promise;
    } finally {
      hasReturned = true;
      clearTimeout(timer);
    }
  }

  stop(): void {
    this.#isStopped = true;
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
  }

  async #compareUntilAnswered(onMatch: () => void, onMismatch: (error: StoreMismatchError) => void): Promise<void> {
    try {
      await checkStoreId(this.#deps);
    } catch (error) {
      if (this.#isStopped) return;
      if (error instanceof StoreMismatchError) return onMismatch(error);
      this.#warnOnce(error);
      this.#retryTimer = setTimeout(() => void this.#compareUntilAnswered(onMatch, onMismatch), RETRY_MS);
      return;
    }
    if (!this.#isStopped) onMatch();
  }

  /** Logs the first error as a warning. Does not log StoreUnavailableError, since other code does. */
  #warnOnce(error: unknown): void {
    if (this.#hasWarned || error instanceof StoreUnavailableError) return;
    this.#hasWarned = true;
    this.#deps.log.warn('the id of the store of files could not be compared yet', { error });
  }
}
