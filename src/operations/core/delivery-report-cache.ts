import type { Log } from '../../log.ts';
import { readLaneReport, type LaneReport } from '../../storage/hooks/lane-report.ts';
import type { Pool } from '../../storage/db/pool.ts';

/**
 * The database is asked for a report at most once in this time, since every scrape and every `klatch status` reads it.
 */
const CACHE_TTL_MS = 10_000;
/** A caller waits at most this long for a new report, and then gets the last one. */
const MAX_WAIT_MS = 1_000;
/**
 * The time-out of the query. The query may take longer than the caller waits, in a large installation or on a busy
 * database.
 */
const QUERY_TIMEOUT_MS = 5_000;

/** A report and how old it is. */
export interface CachedDeliveryReport {
  readonly report: LaneReport;
  readonly ageMs: number;
  /** False: the report is older than `CACHE_TTL_MS`, since the query for a newer one failed or is under way. */
  readonly isFresh: boolean;
}

interface DeliveryReportCacheOptions {
  readonly pool: Pool;
  readonly parkAfterMs: number;
  readonly log: Log;
  /** A monotonic clock in ms. */
  readonly now?: () => number;
}

/** Caches the report on the deliveries of all nodes. */
export class DeliveryReportCache {
  readonly #options: Required<DeliveryReportCacheOptions>;
  #cached: { readonly report: LaneReport; readonly queriedAtMs: number } | null = null;
  #pendingReportQuery: Promise<void> | null = null;

  constructor(options: DeliveryReportCacheOptions) {
    this.#options = { now: () => performance.now(), ...options };
  }

  /** Resolves within a second to the latest report; null: the database has not given any yet. Never rejects. */
  async read(): Promise<CachedDeliveryReport | null> {
    const { now } = this.#options;
    if (this.#cached === null || now() - this.#cached.queriedAtMs >= CACHE_TTL_MS) {
      // Only one query runs at a time, however many callers wait.
      this.#pendingReportQuery ??= this.#query().finally(() => {
        this.#pendingReportQuery = null;
      });
      await waitAtMost(this.#pendingReportQuery, MAX_WAIT_MS);
    }
    if (this.#cached === null) return null;
    const ageMs = now() - this.#cached.queriedAtMs;
    return { report: this.#cached.report, ageMs, isFresh: ageMs < CACHE_TTL_MS };
  }

  async #query(): Promise<void> {
    const { pool, parkAfterMs, log, now } = this.#options;
    const queriedAtMs = now();
    try {
      const report = await pool.run((sql) => readLaneReport(sql, Date.now(), parkAfterMs), QUERY_TIMEOUT_MS);
      this.#cached = { report, queriedAtMs };
    } catch (error) {
      log.debug('the state of the deliveries cannot be read', { error });
    }
  }
}

/** Waits for `work`, which must not reject, but at most `ms`. */
async function waitAtMost(work: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, timeout]);
  clearTimeout(timer);
}
