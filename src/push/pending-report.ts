import type { Log } from '../log.ts';
import type { Pool } from '../storage/pool.ts';
import { countPending, type PendingCount } from '../storage/push-devices.ts';
import { within } from './within.ts';

/** Each scrape asks: the database is asked no more often than this. */
const FRESH_MS = 10_000;
/** Who asks is answered within this, with older counts if need be. */
const WAIT_MS = 1_000;

/** What waits to be pushed by all processes, remembered for a while. */
export class PendingReport {
  readonly #pool: Pool;
  readonly #log: Log;
  #known: readonly PendingCount[] | null = null;
  #askedMs = -Infinity;
  #asking: Promise<void> | null = null;

  constructor(pool: Pool, log: Log) {
    this.#pool = pool;
    this.#log = log;
  }

  /** The latest counts, within a second; null when the database has not given any yet. Never rejects. */
  async read(): Promise<readonly PendingCount[] | null> {
    if (performance.now() - this.#askedMs < FRESH_MS) return this.#known;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null;
    });
    await within(this.#asking, WAIT_MS);
    return this.#known;
  }

  async #ask(): Promise<void> {
    try {
      this.#known = await this.#pool.run(countPending);
      this.#askedMs = performance.now();
    } catch (error) {
      this.#log.debug('the pushes that wait cannot be counted', { error });
    }
  }
}
