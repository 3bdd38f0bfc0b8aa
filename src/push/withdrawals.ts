import { setTimeout as wait } from 'node:timers/promises';
import type { Bus, Signal } from '../bus/bus.ts';
import type { Log } from '../log.ts';
import type { Pool } from '../storage/pool.ts';
import { withdrawRead, type ReadPosition } from '../storage/push-settlement.ts';

/** Between a word and the statement, so that what is read meanwhile is one with it. */
const GATHER_MS = 200;
/** Read positions that wait; of more the claim of the row takes note when it is about to be sent. */
const MAX_WAITING = 5_000;

/** What withdrawing works with. */
export interface WithdrawalParts {
  readonly pool: Pool;
  readonly bus: Bus;
  /** Whether anybody has a device, as far as that is known. */
  readonly isAnybodyTold: () => boolean;
  readonly log: Log;
}

/**
 * Withdraws what waits for an account's devices and was read on one of them. A word that is lost, or a statement that
 * fails, costs nothing but a row that stands for longer: nothing is sent without a look at how far was read.
 */
export class Withdrawals {
  readonly #parts: WithdrawalParts;
  readonly #stopping = new AbortController();
  #waiting = new Map<string, ReadPosition>();
  #wake: () => void = () => {};
  #working: Promise<void> | null = null;
  #unsubscribe: () => void = () => {};

  constructor(parts: WithdrawalParts) {
    this.#parts = parts;
  }

  start(): void {
    if (this.#working !== null) return;
    this.#unsubscribe = this.#parts.bus.subscribe({ signal: (signal) => this.#hear(signal) });
    this.#working = this.#work();
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#stopping.abort();
    this.#wake();
    await this.#working;
  }

  #hear(signal: Signal): void {
    if (signal.kind !== 'read' || !this.#parts.isAnybodyTold() || this.#waiting.size >= MAX_WAITING) return;
    const { conversationId, accountId, seq } = signal;
    const key = `${conversationId}:${accountId}`;
    if ((this.#waiting.get(key)?.seq ?? 0) < seq) this.#waiting.set(key, { conversationId, accountId, seq });
    this.#wake();
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    const { pool, log } = this.#parts;
    try {
      while (!signal.aborted) {
        if (this.#waiting.size === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
        await wait(GATHER_MS, undefined, { signal });
        const positions = [...this.#waiting.values()];
        this.#waiting = new Map();
        await pool
          .run((sql) => withdrawRead(sql, positions))
          .catch((error: unknown) => log.debug('pushes that were read could not be withdrawn early', { error }));
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}
