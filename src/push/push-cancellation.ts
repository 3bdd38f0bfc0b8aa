import { setTimeout as wait } from 'node:timers/promises';
import type { Bus, EphemeralEvent } from '../bus/bus.ts';
import type { Log } from '../log.ts';
import type { Pool } from '../storage/db/pool.ts';
import { cancelReadPushes, type ReadReceipt } from '../storage/push/push-settlement.ts';

/** The delay after a read position arrives. One statement then handles all positions that arrived meanwhile. */
const DEBOUNCE_MS = 200;
/**
 * The most queued read positions. Further ones are dropped. That does no harm, since the claim of a pending push also
 * checks the read position.
 */
const MAX_QUEUED_READ_POSITIONS = 5_000;

interface ReadPushCancellationDeps {
  readonly pool: Pool;
  readonly bus: Bus;
  /** True if a device is registered, as far as this node knows. */
  readonly hasAnyDevice: () => boolean;
  readonly log: Log;
}

/**
 * Deletes the pending pushes of an account for messages that the account has read on one of its devices. After a lost
 * notification or a failed statement, the pushes stay pending but are not sent: the claim of a push also checks the
 * read position.
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
    this.#unsubscribe = this.#deps.bus.subscribe({ ephemeral: (event) => this.#enqueue(event) });
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#stopping.abort();
    this.#wake();
    await this.#running;
  }

  #enqueue(event: EphemeralEvent): void {
    if (event.kind !== 'read' || !this.#deps.hasAnyDevice() || this.#queue.size >= MAX_QUEUED_READ_POSITIONS) return;
    const { conversationId, accountId, seq } = event;
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
