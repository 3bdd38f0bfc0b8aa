import { setTimeout as wait } from 'node:timers/promises';
import type { Bus, EphemeralEvent } from '../bus/bus.ts';
import type { Log } from '../log.ts';
import type { Pool } from '../storage/db/pool.ts';
import { cancelReadPushes, type ReadReceipt } from '../storage/push/push-settlement.ts';

/** Delay after a notification, so that positions that arrive meanwhile share a statement. */
const DEBOUNCE_MS = 200;
/** Queued read positions; further ones are dropped: the claim of a row checks the position before the push is sent. */
const MAX_QUEUED_READ_POSITIONS = 5_000;

/** The dependencies of the cancellation. */
interface ReadPushCancellationDeps {
  readonly pool: Pool;
  readonly bus: Bus;
  /** Whether any device is registered, as far as known. */
  readonly hasAnyDevice: () => boolean;
  readonly log: Log;
}

/**
 * Deletes pending pushes of an account whose messages were read on one of its devices. A lost notification or a failed
 * statement only leaves a row for longer: the send step checks the read position first.
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
