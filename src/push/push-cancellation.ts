import { setTimeout as wait } from 'node:timers/promises';
import type { Bus, EphemeralEvent } from '../bus/bus.ts';
import type { Log } from '../log.ts';
import type { Pool } from '../storage/db/pool.ts';
import { cancelReadPushes, type ReadReceipt } from '../storage/push/push-settlement.ts';

/** Between a word and the statement, so that what is read meanwhile is one with it. */
const DEBOUNCE_MS = 200;
/** Read positions that wait; of more the claim of the row takes note when it is about to be sent. */
const MAX_QUEUED_READ_POSITIONS = 5_000;

/** What withdrawing works with. */
interface ReadPushCancellationDeps {
  readonly pool: Pool;
  readonly bus: Bus;
  /** Whether anybody has a device, as far as that is known. */
  readonly hasAnyDevice: () => boolean;
  readonly log: Log;
}

/**
 * Withdraws what waits for an account's devices and was read on one of them. A word that is lost, or a statement that
 * fails, costs nothing but a row that stands for longer: nothing is sent without a look at how far was read.
 */
export class ReadPushCancellation {
  readonly #deps: ReadPushCancellationDeps;
  readonly #stopping = new AbortController();
  #queue = new Map<string, ReadReceipt>();
  #wake: () => void = () => {};
  #running: Promise<void> | null = null;
  #unsubscribe: () => void = () => {};

  constructor(deps: ReadPushCancellationDeps) {
    this.#deps = deps;
  }

  start(): void {
    if (this.#running !== null) return;
    this.#unsubscribe = this.#deps.bus.subscribe({ ephemeral: (signal) => this.#enqueue(signal) });
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#stopping.abort();
    this.#wake();
    await this.#running;
  }

  #enqueue(signal: EphemeralEvent): void {
    if (signal.kind !== 'read' || !this.#deps.hasAnyDevice() || this.#queue.size >= MAX_QUEUED_READ_POSITIONS) return;
    const { conversationId, accountId, seq } = signal;
    const key = `${conversationId}:${accountId}`;
    if ((this.#queue.get(key)?.seq ?? 0) < seq) this.#queue.set(key, { conversationId, accountId, seq });
    this.#wake();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const { pool, log } = this.#deps;
    try {
      while (!signal.aborted) {
        if (this.#queue.size === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
        await wait(DEBOUNCE_MS, undefined, { signal });
        const positions = [...this.#queue.values()];
        this.#queue = new Map();
        await pool
          .run((sql) => cancelReadPushes(sql, positions))
          .catch((error: unknown) => log.debug('pushes that were read could not be withdrawn early', { error }));
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}
