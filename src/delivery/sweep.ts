import type { Log } from '../log.ts';
import type { ConversationId } from '../model/ids.ts';
import {
  conversationsWithPendingEvents,
  conversationsWithPendingMessages,
  conversationsWithRetryRows,
  type SweepPageRequest,
} from '../storage/hooks/lanes.ts';
import type { Sql } from '../storage/db/connection.ts';
import type { Pool } from '../storage/db/pool.ts';

/** What a sweep asks of the lanes. */
interface SweepEvents {
  /** The partitions that are ours. */
  readonly partitions: () => readonly number[];
  /** Something is pending in these conversations; resolves when their lanes are loaded. */
  readonly onPending: (ids: readonly ConversationId[]) => Promise<void>;
  /** Before each sweep. */
  readonly onBegin: () => void;
}

const SWEEP_INTERVAL_MS = 5_000;
/** Only numbers, so more at once: each page over the last minute looks at everything that advanced in it. */
const SWEPT_CONVERSATIONS_PER_PAGE = 5_000;
/** When the sweeps over the last minute were kept from working for about that long, everything is looked at. */
const FULL_SWEEP_AFTER_MS = 45_000;

/** The net beneath the words of the bus: looks every few seconds for what is pending and was told by none. */
export class Sweep {
  readonly #pool: Pool;
  readonly #events: SweepEvents;
  readonly #log: Log;
  #fullSweepPartitions = new Set<number>();
  #lastSuccessfulSweepAt = performance.now();
  #sweeping: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #stopped = false;

  constructor(pool: Pool, events: SweepEvents, log: Log) {
    this.#pool = pool;
    this.#events = events;
    this.#log = log;
  }

  start(): void {
    this.#schedule();
  }

  /** Ends the sweep that is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#sweeping;
  }

  /** Whatever is pending in these partitions is to be found by the next sweep. */
  requestFullSweep(partitions: readonly number[]): void {
    for (const partition of partitions) this.#fullSweepPartitions.add(partition);
  }

  /** Now, unless one is under way. */
  trigger(): void {
    if (this.#sweeping !== null || this.#stopped) return;
    this.#events.onBegin();
    this.#sweeping = this.#sweep().finally(() => {
      this.#sweeping = null;
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#stopped) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.trigger(), SWEEP_INTERVAL_MS);
  }

  /** Everything that is pending in newly gained partitions; in the others, what advanced within the last minute. */
  async #sweep(): Promise<void> {
    const isOverdue = performance.now() - this.#lastSuccessfulSweepAt > FULL_SWEEP_AFTER_MS;
    const full = isOverdue ? this.#events.partitions() : [...this.#fullSweepPartitions];
    this.#fullSweepPartitions = new Set();
    try {
      for (const find of [conversationsWithPendingMessages, conversationsWithPendingEvents]) {
        const partitions = this.#events.partitions();
        await this.#findPendingByPage(partitions, (sql, page) => find(sql, { ...page, onlyRecent: true }));
        await this.#findPendingByPage(full, (sql, page) => find(sql, { ...page, onlyRecent: false }));
      }
      await this.#findPendingByPage(full, conversationsWithRetryRows);
      this.#lastSuccessfulSweepAt = performance.now();
    } catch (error) {
      this.requestFullSweep(full);
      this.#log.debug('the sweep over the lanes failed, repeating', { error });
    }
  }

  async #findPendingByPage(
    partitions: readonly number[],
    read: (sql: Sql, page: Omit<SweepPageRequest, 'onlyRecent'>) => Promise<ConversationId[]>,
  ): Promise<void> {
    if (partitions.length === 0) return;
    for (let after = 0; !this.#stopped;) {
      const page = { partitions, after, limit: SWEPT_CONVERSATIONS_PER_PAGE };
      const ids = await this.#pool.run((sql) => read(sql, page));
      await this.#events.onPending(ids);
      if (ids.length < SWEPT_CONVERSATIONS_PER_PAGE) return;
      after = ids.at(-1)!;
    }
  }
}
