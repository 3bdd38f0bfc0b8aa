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

interface SweepEvents {
  /** Returns the partitions that this node holds and is not releasing. */
  readonly heldPartitions: () => readonly number[];
  /** Loads the lanes of these conversations, in which something is pending. Resolves when they are loaded. */
  readonly onPending: (ids: readonly ConversationId[]) => Promise<void>;
  readonly onSweepStart: () => void;
}

const SWEEP_INTERVAL_MS = 5_000;
/**
 * The most conversations in one page of a sweep's result. A page can be large, since it has only ids. Few pages are
 * also cheaper: each page's query checks all conversations that advanced in the last minute.
 */
const SWEPT_CONVERSATIONS_PER_PAGE = 5_000;
/**
 * A usual sweep finds only what became pending in the last minute. If no sweep has succeeded for this long, the next
 * one searches all partitions of this node completely.
 */
const FULL_SWEEP_AFTER_MS = 45_000;

/** Searches the database every few seconds for pending deliveries whose notification was lost. */
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

  /** Stops sweeping; resolves when the current sweep has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#sweeping;
  }

  /** Makes the next sweep search these partitions for everything pending, however old. */
  requestFullSweep(partitions: readonly number[]): void {
    for (const partition of partitions) this.#fullSweepPartitions.add(partition);
  }

  /** Sweeps now, unless a sweep is running. */
  sweepNow(): void {
    if (this.#sweeping !== null || this.#stopped) return;
    this.#events.onSweepStart();
    this.#sweeping = this.#sweep().finally(() => {
      this.#sweeping = null;
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#stopped) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.sweepNow(), SWEEP_INTERVAL_MS);
  }

  /**
   * Finds everything pending in newly gained partitions. In other partitions, finds only what became pending in the
   * last minute.
   */
  async #sweep(): Promise<void> {
    const isOverdue = performance.now() - this.#lastSuccessfulSweepAt > FULL_SWEEP_AFTER_MS;
    const partitionsToSweepFully = isOverdue ? this.#events.heldPartitions() : [...this.#fullSweepPartitions];
    this.#fullSweepPartitions = new Set();
    try {
      for (const find of [conversationsWithPendingMessages, conversationsWithPendingEvents]) {
        const partitions = this.#events.heldPartitions();
        await this.#findPendingByPage(partitions, (sql, page) => find(sql, { ...page, onlyRecent: true }));
        await this.#findPendingByPage(partitionsToSweepFully, (sql, page) => find(sql, { ...page, onlyRecent: false }));
      }
      await this.#findPendingByPage(partitionsToSweepFully, conversationsWithRetryRows);
      this.#lastSuccessfulSweepAt = performance.now();
    } catch (error) {
      this.requestFullSweep(partitionsToSweepFully);
      this.#log.debug('the sweep over the lanes failed, repeating', { error });
    }
  }

  async #findPendingByPage(
    partitions: readonly number[],
    readPage: (sql: Sql, page: Omit<SweepPageRequest, 'onlyRecent'>) => Promise<ConversationId[]>,
  ): Promise<void> {
    if (partitions.length === 0) return;
    for (let afterId = 0; !this.#stopped;) {
      const page = { partitions, after: afterId, limit: SWEPT_CONVERSATIONS_PER_PAGE };
      const ids = await this.#pool.run((sql) => readPage(sql, page));
      await this.#events.onPending(ids);
      if (ids.length < SWEPT_CONVERSATIONS_PER_PAGE) return;
      afterId = ids.at(-1)!;
    }
  }
}
