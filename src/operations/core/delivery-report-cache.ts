import type { Log } from '../../log.ts';
import { readLaneReport, type LaneReport } from '../../storage/hooks/lane-report.ts';
import type { Pool } from '../../storage/db/pool.ts';

/** Each scrape and each `klatch status` reads the report: the database is asked no more often than this. */
const CACHE_TTL_MS = 10_000;
/** A caller is answered within this time, with an older report if need be. */
const MAX_WAIT_MS = 1_000;
/** The report of a large installation on a busy database may take longer than its first caller waits. */
const QUERY_TIMEOUT_MS = 5_000;

/** A report and how old it is. */
export interface CachedDeliveryReport {
  readonly report: LaneReport;
  readonly ageMs: number;
  /** False: the report is outdated, and the database has not answered a newer query. */
  readonly isFresh: boolean;
}

interface DeliveryReportCacheOptions {
  readonly pool: Pool;
  readonly parkAfterMs: number;
  readonly log: Log;
  /** A monotonic clock in ms. */
  readonly now?: () => number;
}

/** The state of the deliveries of all processes, cached for a while. */
export class DeliveryReportCache {
  readonly #options: Required<DeliveryReportCacheOptions>;
  #cached: { readonly report: LaneReport; readonly at: number } | null = null;
  #pendingReportQuery: Promise<void> | null = null;

  constructor(options: DeliveryReportCacheOptions) {
    this.#options = { now: () => performance.now(), ...options };
  }

  /** The latest report, within a second; null when the database has not given one yet. Never rejects. */
  async read(): Promise<CachedDeliveryReport | null> {
    const { now } = this.#options;
    if (this.#cached === null || now() - this.#cached.at >= CACHE_TTL_MS) {
      // One query at a time, however many callers wait.
      this.#pendingReportQuery ??= this.#query().finally(() => {
        this.#pendingReportQuery = null;
      });
      await waitAtMost(this.#pendingReportQuery, MAX_WAIT_MS);
    }
    if (this.#cached === null) return null;
    const ageMs = now() - this.#cached.at;
    return { report: this.#cached.report, ageMs, isFresh: ageMs < CACHE_TTL_MS };
  }

  async #query(): Promise<void> {
    const { pool, parkAfterMs, log, now } = this.#options;
    const at = now();
    try {
      const report = await pool.run((sql) => readLaneReport(sql, Date.now(), parkAfterMs), QUERY_TIMEOUT_MS);
      this.#cached = { report, at };
    } catch (error) {
      log.debug('the state of the deliveries cannot be read', { error });
    }
  }
}

/** Waits for work that does not reject, but no longer than `ms`. */
async function waitAtMost(work: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, timeout]);
  clearTimeout(timer);
}
