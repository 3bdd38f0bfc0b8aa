import { setTimeout as wait } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { Log } from '../log.ts';
import type { ConversationId, LogEpoch, Rev } from '../model/ids.ts';
import { readChanges, type Change, type ChangePage } from '../storage/messages/changes.ts';
import type { Pool } from '../storage/db/pool.ts';
import { NOTICE_CHANGED_SEQ, type Witness } from '../storage/messages/witness.ts';
import type { LiveCounts } from './live-counts.ts';
import { ChangeBatch } from './change-batch.ts';
import { logFailureByKind } from './log-failure.ts';

const PAGE_ROWS = 500;
const PAGE_BYTES = 256 * 1024;
/** The most bytes of cached batches of all conversations. Clients that reconnect get batches from the cache. */
const CACHE_BYTES = 32 * 1024 * 1024;
const CACHE_TTL_MS = 60_000;
/** Catch-up reads leave one of the pool's two connections to fan-out reads, for which many followers wait. */
const MAX_CONCURRENT_CATCH_UP_READS = 1;
const MAX_CONCURRENT_FAN_OUT_READS = 2;
const RETRY_DELAY_MS = 300;

/** The reason why there is no batch: the conversation no longer exists, or the database is unreachable. */
export type ReadFailure = 'gone' | 'away';

interface BatchOwner {
  onEvicted(batch: ChangeBatch): void;
}

/** Reads changes from the database, with bounded concurrency, and caches the newest batches within a bound. */
export class ChangeReader {
  readonly counts: LiveCounts['reads'];
  readonly #pool: Pool;
  readonly #witness: Witness;
  readonly #log: Log;
  readonly #observeEpoch: (epoch: LogEpoch) => void;
  readonly #fanOutSemaphore = new Semaphore(MAX_CONCURRENT_FAN_OUT_READS);
  readonly #catchUpSemaphore = new Semaphore(MAX_CONCURRENT_CATCH_UP_READS);
  readonly #stopController = new AbortController();
  readonly #ownerByCachedBatch = new LRUCache<ChangeBatch, BatchOwner>({
    maxSize: CACHE_BYTES,
    ttl: CACHE_TTL_MS,
    sizeCalculation: (_, batch) => batch.memoryBytes,
    dispose: (owner, batch) => owner.onEvicted(batch),
  });

  /** Each read calls `observeEpoch` with the log's epoch, and records in `witness` the last change that it read. */
  constructor(
    pool: Pool,
    deps: { counts: LiveCounts; log: Log; witness: Witness; observeEpoch: (epoch: LogEpoch) => void },
  ) {
    this.#pool = pool;
    this.#witness = deps.witness;
    this.#log = deps.log;
    this.#observeEpoch = deps.observeEpoch;
    this.counts = deps.counts.reads;
  }

  /**
   * The changes after `rev` for all followers. `batch` is null when there are no changes. The result is null when the
   * conversation no longer exists or the server stops. Retries while the database is unreachable.
   */
  async readForFanOut(
    conversationId: ConversationId,
    rev: Rev,
  ): Promise<{ batch: ChangeBatch | null; hasMore: boolean } | null> {
    while (!this.#stopController.signal.aborted) {
      try {
        this.counts.fan_out += 1;
        const page = await this.#fanOutSemaphore.run(() => this.#read(conversationId, rev));
        if (page === null) return null;
        return { batch: page.rev > rev ? new ChangeBatch(conversationId, rev, page) : null, hasMore: page.more };
      } catch (error) {
        logFailureByKind(this.#log, 'live: changes could not be read', error);
        await this.pause();
      }
    }
    return null;
  }

  /** The changes after `rev` for one client that lacks them, without a retry. */
  async readForCatchUp(conversationId: ConversationId, rev: Rev): Promise<ChangeBatch | ReadFailure> {
    this.counts.catch_up += 1;
    try {
      const page = await this.#catchUpSemaphore.run(() => this.#read(conversationId, rev));
      return page === null ? 'gone' : new ChangeBatch(conversationId, rev, page);
    } catch (error) {
      logFailureByKind(this.#log, 'live: changes could not be read', error);
      return 'away';
    }
  }

  /** Waits for `ms`, by default for the time before a retry. Resolves earlier if the server stops. */
  async pause(ms = RETRY_DELAY_MS): Promise<void> {
    try {
      await wait(ms, undefined, { signal: this.#stopController.signal });
    } catch (error) {
      if (!this.#stopController.signal.aborted) throw error;
    }
  }

  cache(batch: ChangeBatch, owner: BatchOwner): void {
    if (batch.memoryBytes > CACHE_BYTES) owner.onEvicted(batch);
    else this.#ownerByCachedBatch.set(batch, owner);
  }

  evict(batch: ChangeBatch): void {
    this.#ownerByCachedBatch.delete(batch);
  }

  evictExpired(): void {
    this.#ownerByCachedBatch.purgeStale();
  }

  get isStopped(): boolean {
    return this.#stopController.signal.aborted;
  }

  stop(): void {
    this.#stopController.abort();
    this.#ownerByCachedBatch.clear();
  }

  async #read(conversationId: ConversationId, afterRev: Rev): Promise<ChangePage | null> {
    const page = await this.#pool.run((sql) =>
      readChanges(sql, { conversationId, afterRev, limit: PAGE_ROWS, maxBytes: PAGE_BYTES }),
    );
    if (page !== null) this.#observeEpoch(page.currentEpoch);
    const last = page?.changes.at(-1);
    if (last !== undefined) this.#witness.recordChange(conversationId, witnessedChangeOf(last));
    return page;
  }
}

function witnessedChangeOf(change: Change): Parameters<Witness['recordChange']>[1] {
  const { rev } = change;
  if (change.type === 'notice') return { rev, changedSeq: NOTICE_CHANGED_SEQ, changedAtMs: change.notice.at.getTime() };
  const { seq, sentAt, editedAt, deletedAt } = change.message;
  return { rev, changedSeq: seq, changedAtMs: (deletedAt ?? editedAt ?? sentAt).getTime() };
}

/**
 * Runs a bounded number of calls at once; the others wait in the order in which they came. The number of live
 * connections bounds the number of waiting calls.
 */
class Semaphore {
  #availablePermits: number;
  readonly #waiters: (() => void)[] = [];

  constructor(permits: number) {
    this.#availablePermits = permits;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#availablePermits > 0) this.#availablePermits -= 1;
    else await new Promise<void>((resolve) => this.#waiters.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiters.shift();
      if (next === undefined) this.#availablePermits += 1;
      else next();
    }
  }
}
