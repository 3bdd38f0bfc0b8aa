import type { Log } from '../log.ts';
import type { HookId } from '../model/ids.ts';
import { sqlState } from '../storage/database-error.ts';
import type { Pool } from '../storage/pool.ts';
import type { Settlement } from '../storage/settlement.ts';
import { settle } from '../storage/settlements.ts';

interface Pending {
  readonly settlement: Settlement;
  readonly resolve: (taken: boolean) => void;
  /** True once it failed alone or with others: it is tried by itself from then on. */
  alone: boolean;
}

const MAX_BATCH = 500;
const RETRY_MS = 250;
/**
 * From the end of one write to the next, unless a lane waits. Lanes send on meanwhile, so that larger batches cost them
 * nothing and the database a third less.
 */
const PACE_MS = 5;

/**
 * Writes what became of attempts, those of all lanes together. Each lane has one settlement here at a time
 * (`Unsettled` sees to that), also while the database is away.
 */
export class Settler {
  readonly #pool: Pool;
  readonly #log: Log;
  readonly #unsettled = new Set<Pending>();
  #waiting: Pending[] = [];
  #writing = false;
  #pause: NodeJS.Timeout | null = null;
  #hurried = false;
  #failing = false;
  #stopped = false;

  constructor(pool: Pool, log: Log) {
    this.#pool = pool;
    this.#log = log;
  }

  /** Settlements that are not committed yet. */
  get unsettled(): number {
    return this.#unsettled.size;
  }

  /** Resolves once it is committed: true, or false when the hook was changed or handed over and must be read again. */
  settle(settlement: Settlement): Promise<boolean> {
    if (this.#stopped) return Promise.resolve(false);
    return new Promise((resolve) => {
      const pending: Pending = { settlement, resolve, alone: false };
      this.#unsettled.add(pending);
      this.#waiting.push(pending);
      this.#pump();
    });
  }

  /** Gives up; what could not be written by now is delivered again after the next start. */
  stop(): void {
    this.#stopped = true;
    if (this.#pause !== null) clearTimeout(this.#pause);
    for (const pending of this.#unsettled) this.#done(pending, false);
    this.#waiting = [];
  }

  /** A lane waits: what is there is written as soon as no write is under way. */
  hurry(): void {
    this.#hurried = true;
    if (this.#pause === null) return;
    clearTimeout(this.#pause);
    this.#pause = null;
    this.#pump();
  }

  /** One write at a time: one larger batch beats two smaller ones (10,700 against 9,600 deliveries a second). */
  #pump(): void {
    if (this.#writing || this.#pause !== null || this.#waiting.length === 0) return;
    this.#writing = true;
    this.#hurried = false;
    // Attempts that ended in the same turn of the event loop share a commit.
    setImmediate(() => {
      void this.#write(this.#take()).finally(() => {
        this.#writing = false;
        this.#rest();
      });
    });
  }

  #rest(): void {
    // One that has to be tried by itself holds up those behind it.
    if (this.#hurried || this.#stopped || this.#waiting[0]?.alone === true) {
      this.#pump();
      return;
    }
    this.#pause = setTimeout(() => {
      this.#pause = null;
      this.#pump();
    }, PACE_MS);
  }

  /** One that failed by itself, or all the others up to the bound. */
  #take(): Pending[] {
    if (this.#waiting[0]?.alone === true) return this.#waiting.splice(0, 1);
    const end = this.#waiting.findIndex((pending) => pending.alone);
    return this.#waiting.splice(0, Math.min(MAX_BATCH, end === -1 ? MAX_BATCH : end));
  }

  async #write(batch: readonly Pending[]): Promise<void> {
    if (batch.length === 0) return;
    const settlements = batch.map((pending) => pending.settlement);
    try {
      const taken: Set<HookId> = await this.#pool.run((sql) => settle(sql, settlements));
      this.#failing = false;
      for (const pending of batch) this.#done(pending, taken.has(pending.settlement.hookId));
    } catch (error) {
      if (!this.#failing) this.#log.warn('deliveries cannot be settled, repeating', { count: batch.length, error });
      this.#failing = true;
      this.#repeat(batch, error);
    }
  }

  /**
   * What PostgreSQL itself refused (a locked row, say) may be the fault of one: each is tried by itself, so that the
   * others go on. A lost connection is nobody's fault: they are tried together again.
   */
  #repeat(batch: readonly Pending[], error: unknown): void {
    const refused = sqlState(error) !== null;
    for (const pending of batch) pending.alone = refused;
    const again = (): void => {
      if (this.#stopped) return;
      this.#waiting.push(...batch);
      this.#pump();
    };
    // Those that were refused together begin by themselves at once; one that was refused alone rests first.
    if (refused && batch.length > 1) again();
    else setTimeout(again, RETRY_MS);
  }

  #done(pending: Pending, taken: boolean): void {
    if (this.#unsettled.delete(pending)) pending.resolve(taken);
  }
}
