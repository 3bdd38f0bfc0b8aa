import { StoreAwayError } from './store.ts';

/** Memory for parts, all uploads together. */
export const PART_MEMORY_BYTES = 256 * 1024 * 1024;
const SLOT_WAIT_MS = 30_000;
/** Of a wait, before somebody is asked to make room: enough is left to store what was gathered there. */
const PATIENCE = 2 / 3;

/** A place for a part. */
export interface PartSlot {
  /** The part is full: from here on only the store holds it up, and it is not called back. */
  full(): void;
  /** Once. */
  release(): void;
}

/** A part that is being filled. */
interface Filling {
  readonly since: number;
  readonly callBack: () => void;
}

/**
 * Parts that may be held in memory at once. Who wants one more waits its turn and reads nothing meanwhile, so that many
 * uploads at once are slower and never larger. Uploads that trickle do not keep the others out: who has waited for most
 * of its time has the part called back that has been filled for the longest, if that is longer than the wait.
 */
export class PartSlots {
  readonly #waitMs: number;
  readonly #waiting: (() => void)[] = [];
  /** In the order in which they were taken. */
  readonly #filling = new Set<Filling>();
  #free: number;

  constructor(partBytes: number, waitMs = SLOT_WAIT_MS) {
    // Two, so that one is filled while the other one is sent.
    this.#free = Math.max(2, Math.floor(PART_MEMORY_BYTES / partBytes));
    this.#waitMs = waitMs;
  }

  /**
   * Resolves when there is one. Rejects with StoreAwayError when that takes too long. `callBack` is called once at most,
   * before the slot is `full`: whoever fills it is to store what there is, and release it. Null: it is full already.
   */
  async take(callBack: (() => void) | null): Promise<PartSlot> {
    if (this.#free > 0) this.#free -= 1;
    else await this.#turn();
    const filling = callBack === null ? null : { since: performance.now(), callBack };
    if (filling !== null) this.#filling.add(filling);
    const full = (): void => void (filling !== null && this.#filling.delete(filling));
    return {
      full,
      release: () => {
        full();
        this.#pass();
      },
    };
  }

  async #turn(): Promise<void> {
    const turn = Promise.withResolvers<void>();
    const began = performance.now();
    const patience = setTimeout(() => this.#callOneBack(began), this.#waitMs * PATIENCE);
    const timer = setTimeout(() => {
      this.#waiting.splice(this.#waiting.indexOf(turn.resolve), 1);
      turn.reject(new StoreAwayError('the store of files takes less than is being uploaded'));
    }, this.#waitMs);
    this.#waiting.push(turn.resolve);
    try {
      await turn.promise;
    } finally {
      clearTimeout(patience);
      clearTimeout(timer);
    }
  }

  #callOneBack(before: number): void {
    const [longest] = this.#filling;
    if (longest === undefined || longest.since >= before) return;
    this.#filling.delete(longest);
    longest.callBack();
  }

  #pass(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
