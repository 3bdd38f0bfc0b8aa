import type { Log } from '../log.ts';
import type { HookId } from '../model/ids.ts';
import type { Pool } from '../storage/pool.ts';
import { settle, type Settlement } from '../storage/settlements.ts';

interface Pending {
  readonly settlement: Settlement;
  readonly resolve: (taken: boolean) => void;
}

const MAX_BATCH = 500;
const IN_FLIGHT = 2;
const RETRY_MS = 250;

/**
 * Writes what became of attempts, those of all lanes together. A lane waits for its settlement before it sends on, so
 * at most one delivery of a lane is unsettled, and that is what a kill can repeat. While the database is away the
 * settlements wait here, one for each lane that was sending.
 */
export class Settler {
  readonly #pool: Pool;
  readonly #log: Log;
  #pending: Pending[] = [];
  #inFlight = 0;
  #stopped = false;

  constructor(pool: Pool, log: Log) {
    this.#pool = pool;
    this.#log = log;
  }

  /** Resolves once it is committed: true, or false when the hook was changed or handed over and must be read again. */
  settle(settlement: Settlement): Promise<boolean> {
    return new Promise((resolve) => {
      this.#pending.push({ settlement, resolve });
      this.#pump();
    });
  }

  /** Gives up repeating; what could not be written by now is delivered again after the next start. */
  stop(): void {
    this.#stopped = true;
  }

  #pump(): void {
    while (this.#inFlight < IN_FLIGHT && this.#pending.length > 0) {
      this.#inFlight += 1;
      // Attempts that ended in the same turn of the event loop share a commit.
      setImmediate(() => {
        const batch = this.#pending.splice(0, MAX_BATCH);
        void this.#write(batch).finally(() => {
          this.#inFlight -= 1;
          this.#pump();
        });
      });
    }
  }

  async #write(batch: readonly Pending[]): Promise<void> {
    if (batch.length === 0) return;
    for (let tries = 1; ; tries += 1) {
      try {
        const taken: Set<HookId> = await this.#pool.run((sql) =>
          settle(
            sql,
            batch.map((pending) => pending.settlement),
          ),
        );
        for (const pending of batch) pending.resolve(taken.has(pending.settlement.hookId));
        return;
      } catch (error) {
        if (tries === 1) this.#log.warn('deliveries cannot be settled, repeating', { count: batch.length, error });
        if (this.#stopped) break;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
    for (const pending of batch) pending.resolve(false);
  }
}
