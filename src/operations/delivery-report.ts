import type { Log } from '../log.ts';
import { laneReport, type LaneReport } from '../storage/lane-report.ts';
import type { Pool } from '../storage/pool.ts';

/** Asked by each scrape and each `klatch status`: the database is asked no more often than this. */
const FRESH_MS = 10_000;
/** Who asks is answered within this, with an older report if need be. */
const WAIT_MS = 1_000;
/** The report of a large installation on a busy database may take longer than its first caller waits. */
const QUERY_MS = 5_000;

/** A report and how old it is; more than 10 s means that the database did not answer since. */
export interface AgedReport {
  readonly report: LaneReport;
  readonly ageMs: number;
}

export interface DeliveryReportOptions {
  readonly pool: Pool;
  readonly parkAfterMs: number;
  readonly log: Log;
  /** A monotonic clock in ms. */
  readonly now?: () => number;
}

/** How the deliveries of all processes are doing, remembered for a while. */
export class DeliveryReport {
  readonly #options: Required<DeliveryReportOptions>;
  #known: { readonly report: LaneReport; readonly at: number } | null = null;
  #asking: Promise<void> | null = null;

  constructor(options: DeliveryReportOptions) {
    this.#options = { now: () => performance.now(), ...options };
  }

  /** The latest report, within a second; null when the database has not given one yet. Never rejects. */
  async read(): Promise<AgedReport | null> {
    const { now } = this.#options;
    if (this.#known === null || now() - this.#known.at >= FRESH_MS) {
      // One question at a time, however many ask.
      this.#asking ??= this.#ask().finally(() => {
        this.#asking = null;
      });
      await within(this.#asking, WAIT_MS);
    }
    return this.#known === null ? null : { report: this.#known.report, ageMs: now() - this.#known.at };
  }

  async #ask(): Promise<void> {
    const { pool, parkAfterMs, log, now } = this.#options;
    const at = now();
    try {
      const report = await pool.run((sql) => laneReport(sql, Date.now(), parkAfterMs), QUERY_MS);
      this.#known = { report, at };
    } catch (error) {
      log.debug('the state of the deliveries cannot be read', { error });
    }
  }
}

/** Waits for work that does not reject, but no longer than `ms`. */
async function within(work: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, timeout]);
  clearTimeout(timer);
}
