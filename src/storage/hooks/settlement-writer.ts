import { setTimeout as wait } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { startThread } from '../../assets.ts';
import { DURATIONS_S, Histogram } from '../../histogram.ts';
import type { Log } from '../../log.ts';
import type { HookId } from '../../model/ids.ts';
import type { ConnectionTarget } from '../db/connection.ts';
import { DatabaseUnavailableError, CommitUnknownError } from '../db/database-error.ts';
import type { ConnectionUse, PoolCounts } from '../db/pool.ts';
import { deserializeError } from './serialized-error.ts';
import { packSettlements } from './settlement-columns.ts';
import type { SettlementAnswer, SettlementThreadData } from './settlement-thread.ts';
import type { Settlement } from './settlement.ts';

/** The thread's own deadline comes first, by this part of it: then it is only its session that has to be made anew. */
const MARGIN = 0.05;
const RESTART_MS = 1_000;
/** A thread ends within a few milliseconds, unless it is looking up the database's name. */
const STOP_MS = 500;

/** Without a bound its heap grew to 200 MB of garbage while no write could connect; with this one to 85 MB. */
const HEAP = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 };

/** A write that the thread has not answered. */
interface UnderWay {
  readonly resolve: (taken: Set<HookId>) => void;
  readonly reject: (error: Error) => void;
  readonly deadline: NodeJS.Timeout;
}

export interface SettlementWriterOptions {
  /** The deadline of one write, connecting and starting the thread included. */
  readonly timeoutMs: number;
  readonly log: Log;
  readonly start?: typeof startThread;
  /** From one start of the thread to the next; a second by default. */
  readonly restartMs?: number;
}

/**
 * Writes settlements through a thread that owns their connection: the main thread spends 3 to 6 % less on a delivery
 * (measured). It is started by the first write, and by the next one when it died.
 */
export class SettlementWriter implements ConnectionUse {
  readonly counts: PoolCounts = { waitS: new Histogram(DURATIONS_S), refused: 0 };
  readonly size = 1;
  readonly waiting = 0;
  readonly #options: SettlementWriterOptions;
  readonly #data: SettlementThreadData;
  #thread: Worker | null = null;
  #startedAt = -Infinity;
  #underWay: UnderWay | null = null;
  #stopping: Promise<void> | null = null;

  constructor(target: ConnectionTarget, options: SettlementWriterOptions) {
    this.#options = options;
    this.#data = { target: { ...target }, timeoutMs: options.timeoutMs * (1 - MARGIN) };
  }

  get busy(): number {
    return this.#underWay === null ? 0 : 1;
  }

  /**
   * What `settle` does, one write at a time. Rejects with DatabaseUnavailableError (nothing was sent), CommitUnknownError
   * (outcome unknown: the connection or the thread was lost, or the deadline passed), or PostgreSQL's own error.
   */
  async write(settlements: readonly Settlement[]): Promise<Set<HookId>> {
    const thread = this.#underWay === null ? this.#running() : null;
    if (thread === null) {
      this.counts.refused += 1;
      throw new DatabaseUnavailableError('the thread that settles is not there, or not free');
    }
    const packed = packSettlements(settlements);
    return new Promise((resolve, reject) => {
      const { timeoutMs } = this.#options;
      const expire = (): void => this.#lose(thread, `no answer from its thread within ${timeoutMs} ms`);
      this.#underWay = { resolve, reject, deadline: setTimeout(expire, timeoutMs) };
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is for windows of a browser.
      thread.postMessage(packed);
    });
  }

  /** Ends the thread and its connection. What is under way is rejected. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    const thread = this.#thread;
    this.#thread = null;
    this.#finish()?.reject(new CommitUnknownError('the server is stopping'));
    if (thread !== null) await Promise.race([thread.terminate(), wait(STOP_MS, null, { ref: false })]);
  }

  /** The thread, started if need be; null when the last start is too recent, or failed. */
  #running(): Worker | null {
    if (this.#thread !== null || this.#stopping !== null) return this.#thread;
    const { restartMs = RESTART_MS } = this.#options;
    if (performance.now() < this.#startedAt + restartMs) return null;
    this.#startedAt = performance.now();
    try {
      this.#thread = this.#start();
    } catch (error) {
      this.#options.log.error('the thread that settles cannot be started', { error });
    }
    return this.#thread;
  }

  #start(): Worker {
    const { start = startThread } = this.#options;
    const options = { name: 'settle', workerData: this.#data, resourceLimits: HEAP };
    const thread = start('storage/hooks/settlement-thread', options);
    thread.on('message', (answer: SettlementAnswer) => this.#answered(thread, answer));
    thread.on('error', (error) => this.#lose(thread, 'its thread failed', error));
    thread.on('messageerror', (error) => this.#lose(thread, 'its thread cannot be understood', error));
    thread.on('exit', () => this.#lose(thread, 'its thread ended'));
    // The server decides when the process ends. Last, since a listener of messages would hold it again.
    thread.unref();
    return thread;
  }

  #answered(thread: Worker, answer: SettlementAnswer): void {
    if (this.#thread !== thread) return;
    const underWay = this.#finish();
    if ('kind' in answer) underWay?.reject(deserializeError(answer));
    else underWay?.resolve(new Set(answer));
  }

  /** Told more than once of one thread: an error is followed by the exit. */
  #lose(thread: Worker, why: string, cause?: unknown): void {
    if (this.#thread !== thread) return;
    this.#thread = null;
    const error = new CommitUnknownError(`a settlement is in doubt: ${why}`, { cause });
    this.#options.log.error('the thread that settles is lost, the next settlement starts another', { error });
    this.#finish()?.reject(error);
    void thread.terminate();
  }

  #finish(): UnderWay | null {
    const underWay = this.#underWay;
    this.#underWay = null;
    if (underWay !== null) clearTimeout(underWay.deadline);
    return underWay;
  }
}
