import type { Log } from '../log.ts';
import type { Pool } from '../storage/db/pool.ts';
import { countPendingPushes, type PendingPushCount } from '../storage/push/push-devices.ts';
import { waitAtMost } from './wait-at-most.ts';

/** Each scrape reads the counts: the cache queries the database no more often than this. */
const CACHE_TTL_MS = 10_000;
/** A caller gets an answer within this time, with older counts if necessary. */
const MAX_QUERY_WAIT_MS = 1_000;

/** The pending pushes of all processes, cached for a while. */
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

  /** The latest counts, within a second; null when the database has not returned any yet. Never rejects. */
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
