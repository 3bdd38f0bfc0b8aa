import type { HookId } from '../model/ids.ts';
import type { LaneRow } from '../storage/lanes.ts';
import type { AttemptRecord, LaneProgress, RetryRecord, Settlement } from '../storage/settlement.ts';
import { progressOf } from './progress.ts';
import type { Unsettled } from './unsettled.ts';

/** What there is to write about a lane, besides how far it is. */
export interface Entry {
  readonly epoch: number;
  readonly attempts: readonly AttemptRecord[];
  readonly retries?: readonly RetryRecord[];
}

/** How far a lane is: what it remembers, and what of that has to be written. */
export class Ledger {
  readonly #hookId: HookId;
  readonly #generation: number;
  readonly #unsettled: Unsettled;
  #progress: LaneProgress;

  constructor(row: LaneRow, unsettled: Unsettled) {
    this.#hookId = row.id;
    this.#generation = row.generation;
    this.#unsettled = unsettled;
    this.#progress = progressOf(row);
  }

  get progress(): LaneProgress {
    return this.#progress;
  }

  /** The lane goes on from the changed place at once; what it takes to remember it is written meanwhile. */
  settle(change: Partial<LaneProgress>, entry: Entry): Settlement {
    const settlement = this.draft(change, entry);
    this.#progress = settlement;
    this.#unsettled.add(settlement);
    return settlement;
  }

  /** What `settle` would write. */
  draft(change: Partial<LaneProgress>, { epoch, attempts, retries = [] }: Entry): Settlement {
    const fences = { hookId: this.#hookId, generation: this.#generation, epoch };
    return { ...this.#progress, ...change, ...fences, attempts, retries };
  }

  /** Waits while as much is unwritten as may be. */
  room(): Promise<void> | undefined {
    return this.#unsettled.isFull ? this.#unsettled.room() : undefined;
  }

  /** Waits until everything is written. False: the hook was changed by somebody else meanwhile. */
  drain(): Promise<boolean> {
    return this.#unsettled.drain();
  }
}
