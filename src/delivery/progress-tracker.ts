import type { HookId } from '../model/ids.ts';
import type { LaneRow } from '../storage/hooks/lanes.ts';
import type {
  AttemptRecord,
  LaneCursorAndFailures,
  RetryRangeUpdate,
  Settlement,
} from '../storage/hooks/settlement.ts';
import { initialProgress } from './attempt-result.ts';
import type { SettlementBuffer } from './settlement-buffer.ts';

/** The parts of a settlement that are not the lane's progress. */
interface SettlementDetails {
  readonly leaseEpoch: number;
  readonly attempts: readonly AttemptRecord[];
  readonly retries?: readonly RetryRangeUpdate[];
}

/** A lane's progress in memory, and its settlements that are not written yet. */
export class ProgressTracker {
  readonly #hookId: HookId;
  readonly #generation: number;
  readonly #settlementBuffer: SettlementBuffer;
  #progress: LaneCursorAndFailures;

  constructor(row: LaneRow, settlementBuffer: SettlementBuffer) {
    this.#hookId = row.id;
    this.#generation = row.generation;
    this.#settlementBuffer = settlementBuffer;
    this.#progress = initialProgress(row);
  }

  get progress(): LaneCursorAndFailures {
    return this.#progress;
  }

  /**
   * Applies a change to the lane's progress at once, so that the lane continues from there. The settlement with this
   * change is written meanwhile.
   */
  settle(change: Partial<LaneCursorAndFailures>, details: SettlementDetails): Settlement {
    const settlement = this.buildSettlement(change, details);
    this.#progress = settlement;
    this.#settlementBuffer.add(settlement);
    return settlement;
  }

  /** Builds the settlement that `settle` would write, but writes nothing. */
  buildSettlement(
    change: Partial<LaneCursorAndFailures>,
    { leaseEpoch: epoch, attempts, retries = [] }: SettlementDetails,
  ): Settlement {
    const fences = { hookId: this.#hookId, generation: this.#generation, epoch };
    return { ...this.#progress, ...change, ...fences, attempts, retries };
  }

  /** Waits while the lane has as many unsettled attempts as it may have. */
  waitForCapacity(): Promise<void> | undefined {
    return this.#settlementBuffer.isFull ? this.#settlementBuffer.waitForCapacity() : undefined;
  }

  /**
   * Waits until all settlements of the lane are written. False: one was refused, since another writer changed the hook.
   */
  flush(): Promise<boolean> {
    return this.#settlementBuffer.flush();
  }
}
