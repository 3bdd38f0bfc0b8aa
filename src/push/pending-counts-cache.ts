import type { Log } from '../log.ts';
import type { Pool } from '../storage/db/pool.ts';
import { countPendingPushes, type PendingPushCount } from '../storage/push/push-devices.ts';
import { waitAtMost } from './wait-at-most.ts';

/**
 * How long the counts are cached. Each scrape of the metrics reads them, and should not query the database each time.
 */
const CACHE_TTL_MS = 10_000;
/** A caller waits no longer than this for the query, and then gets older counts. */
const MAX_QUERY_WAIT_MS = 1_000;

/** Counts the pending pushes of all nodes in the database, and caches the counts. */
export class PendingCountsCache {
  readonly #pool: Pool;
  readonly #log: Log;
  #cached: readonly PendingPushCount[] | null = null;
  #cachedAtMs = -Infinity;
  #runningQuery: Promise<void> | null = null;

  constructor(pool: Pool, log: Log) {
    this.#pool = pool;
    this.#log = log;
  }

  /** Resolves within a second to the latest counts; null if the database has not returned any yet. Never rejects. */
  async read(): Promise<readonly PendingPushCount[] | null> {
    if (performance.now() - this.#cachedAtMs < CACHE_TTL_MS) return this.#cached;
    this.#runningQuery ??= this.#query().finally(() => {
      this.#runningQuery = null;
    });
    await waitAtMost(this.#runningQuery, MAX_QUERY_WAIT_MS);
    return this.#cached;
  }

  async #query(): Promise<void> {
    try {
      this.#cached = await this.#pool.run(countPendingPushes);
      this.#cachedAtMs = performance.now();
    } catch (error) {
      this.#log.debug('the pushes that wait cannot be counted', { error });
    }
  }
}
