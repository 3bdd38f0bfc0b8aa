import type { Log } from '../log.ts';
import { sqlState } from '../storage/db/database-error.ts';
import type { Settlement } from '../storage/hooks/settlement.ts';
import type { SettlementWriter } from '../storage/hooks/settlement-writer.ts';

interface PendingSettlement {
  readonly settlement: Settlement;
  readonly resolve: (accepted: boolean) => void;
  /**
   * True after PostgreSQL refused the settlement, alone or in a batch. It is then written in a statement of its own.
   */
  needsOwnStatement: boolean;
}

const MAX_SETTLEMENTS_PER_WRITE = 500;
const SETTLE_RETRY_MS = 250;
/**
 * Pause between the end of one write and the next, unless a lane waits for a write. Lanes continue to send meanwhile.
 * The pause makes batches larger, which saves the database a third of the work.
 */
const PAUSE_BETWEEN_WRITES_MS = 5;

/**
 * Writes the outcomes of the attempts of all lanes, many lanes in one commit. Each lane has at most one settlement
 * here, even while the database is unreachable (`SettlementBuffer` ensures that).
 */
export class Settler {
  readonly #writer: SettlementWriter;
  readonly #log: Log;
  readonly #pending = new Set<PendingSettlement>();
  #waiting: PendingSettlement[] = [];
  #writing = false;
  #paceTimer: NodeJS.Timeout | null = null;
  #isLaneAwaitingWrite = false;
  #isWriteFailing = false;
  #stopped = false;

  constructor(writer: SettlementWriter, log: Log) {
    this.#writer = writer;
    this.#log = log;
  }

  /** Settlements that are not committed yet. */
  get pendingCount(): number {
    return this.#pending.size;
  }

  /**
   * Writes a settlement. Resolves to true once it is committed, and to false in two cases:
   * - The hook was changed or belongs to another node now: its row must be read again.
   * - The settler stops.
   */
  settle(settlement: Settlement): Promise<boolean> {
    if (this.#stopped) return Promise.resolve(false);
    return new Promise((resolve) => {
      const pending: PendingSettlement = { settlement, resolve, needsOwnStatement: false };
      this.#pending.add(pending);
      this.#waiting.push(pending);
      this.#beginWriteIfIdle();
    });
  }

  /** Starts no further write. Attempts without a committed settlement are delivered again after the next start. */
  stop(): void {
    this.#stopped = true;
    if (this.#paceTimer !== null) clearTimeout(this.#paceTimer);
    for (const pending of this.#pending) this.#conclude(pending, false);
    this.#waiting = [];
  }

  /**
   * Called when a lane waits for its settlement: the waiting settlements are written without the pause between writes.
   */
  writeWithoutPause(): void {
    this.#isLaneAwaitingWrite = true;
    if (this.#paceTimer === null) return;
    clearTimeout(this.#paceTimer);
    this.#paceTimer = null;
    this.#beginWriteIfIdle();
  }

  /**
   * Begins a write unless one is running. One write at a time with a larger batch is faster than two smaller ones at
   * once (10,700 against 9,600 deliveries a second).
   */
  #beginWriteIfIdle(): void {
    if (this.#writing || this.#paceTimer !== null || this.#waiting.length === 0) return;
    this.#writing = true;
    this.#isLaneAwaitingWrite = false;
    // `setImmediate` lets all attempts that end in this turn of the event loop share one commit.
    setImmediate(() => {
      void this.#write(this.#takeBatch()).finally(() => {
        this.#writing = false;
        this.#beginWriteNowOrPaced();
      });
    });
  }

  #beginWriteNowOrPaced(): void {
    // A settlement that PostgreSQL refused is written without a pause, since the settlements after it wait for it.
    if (this.#isLaneAwaitingWrite || this.#stopped || this.#waiting[0]?.needsOwnStatement === true) {
      this.#beginWriteIfIdle();
      return;
    }
    this.#paceTimer = setTimeout(() => {
      this.#paceTimer = null;
      this.#beginWriteIfIdle();
    }, PAUSE_BETWEEN_WRITES_MS);
  }

  /**
   * Takes the settlements of the next write: one that needs its own statement, or all before the next such one, up to
   * `MAX_SETTLEMENTS_PER_WRITE`.
   */
  #takeBatch(): PendingSettlement[] {
    if (this.#waiting[0]?.needsOwnStatement === true) return this.#waiting.splice(0, 1);
    const end = this.#waiting.findIndex((pending) => pending.needsOwnStatement);
    return this.#waiting.splice(0, Math.min(MAX_SETTLEMENTS_PER_WRITE, end === -1 ? MAX_SETTLEMENTS_PER_WRITE : end));
  }

  async #write(batch: readonly PendingSettlement[]): Promise<void> {
    if (batch.length === 0) return;
    const settlements = batch.map((pending) => pending.settlement);
    try {
      const acceptedHookIds = await this.#writer.write(settlements);
      this.#isWriteFailing = false;
      for (const pending of batch) this.#conclude(pending, acceptedHookIds.has(pending.settlement.hookId));
    } catch (error) {
      if (!this.#isWriteFailing)
        this.#log.warn('deliveries cannot be settled, repeating', { count: batch.length, error });
      this.#isWriteFailing = true;
      this.#retry(batch, error);
    }
  }

  /**
   * Queues the settlements of a failed write again. If PostgreSQL itself refused the batch (a locked row, say), one
   * settlement may be at fault. Each is then written alone, so that the others succeed. After a lost connection the
   * batch is retried together.
   */
  #retry(batch: readonly PendingSettlement[], error: unknown): void {
    const isRefusedByDatabase = sqlState(error) !== null;
    for (const pending of batch) pending.needsOwnStatement = isRefusedByDatabase;
    const requeue = (): void => {
      if (this.#stopped) return;
      this.#waiting.push(...batch);
      this.#beginWriteIfIdle();
    };
    // Settlements that were refused together are retried one by one, without a wait. One that was refused alone waits
    // first.
    if (isRefusedByDatabase && batch.length > 1) requeue();
    else setTimeout(requeue, SETTLE_RETRY_MS);
  }

  #conclude(pending: PendingSettlement, accepted: boolean): void {
    if (this.#pending.delete(pending)) pending.resolve(accepted);
  }
}
