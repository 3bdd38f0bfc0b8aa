import { StoreUnavailableError } from './store.ts';

/** Memory for parts, all uploads together. */
export const PART_MEMORY_BYTES = 256 * 1024 * 1024;
const RESERVATION_TIMEOUT_MS = 30_000;
/** Of a wait, before somebody is asked to make room: enough is left to store what was gathered there. */
const RECLAIM_AFTER_SHARE = 2 / 3;

/** A place for a part. */
export interface PartReservation {
  /** The part is full: from here on only the store holds it up, and it is not called back. */
  markFull(): void;
  /** Once. */
  release(): void;
}

/** A part that is being filled. */
interface FillingPart {
  readonly fillingSinceMs: number;
  readonly reclaim: () => void;
}

/**
 * Parts that may be held in memory at once. Who wants one more waits its turn and reads nothing meanwhile, so that many
 * uploads at once are slower and never larger. Uploads that trickle do not keep the others out: who has waited for most
 * of its time has the part called back that has been filled for the longest, if that is longer than the wait.
 */
export class PartBufferPool {
  readonly #reservationTimeoutMs: number;
  readonly #waiters: (() => void)[] = [];
  /** In the order in which they were taken. */
  readonly #filling = new Set<FillingPart>();
  #freeSlots: number;

  constructor(partBytes: number, reservationTimeoutMs = RESERVATION_TIMEOUT_MS) {
    // Two, so that one is filled while the other one is sent.
    this.#freeSlots = Math.max(2, Math.floor(PART_MEMORY_BYTES / partBytes));
    this.#reservationTimeoutMs = reservationTimeoutMs;
  }

  /**
   * Resolves when there is one. Rejects with StoreUnavailableError when that takes too long. `reclaim` is called once at most,
   * before the slot is `markFull`: whoever fills it is to store what there is, and release it. Null: it is full already.
   */
  async take(reclaim: (() => void) | null): Promise<PartReservation> {
    if (this.#freeSlots > 0) this.#freeSlots -= 1;
    else await this.#waitForRelease();
    const filling = reclaim === null ? null : { fillingSinceMs: performance.now(), reclaim };
    if (filling !== null) this.#filling.add(filling);
    const markFull = (): void => void (filling !== null && this.#filling.delete(filling));
    return {
      markFull,
      release: () => {
        markFull();
        this.#releaseSlot();
      },
    };
  }

  async #waitForRelease(): Promise<void> {
    const waiter = Promise.withResolvers<void>();
    const began = performance.now();
    const reclaimTimer = setTimeout(
      () => this.#reclaimLongestFillingPart(began),
      this.#reservationTimeoutMs * RECLAIM_AFTER_SHARE,
    );
    const timer = setTimeout(() => {
      this.#waiters.splice(this.#waiters.indexOf(waiter.resolve), 1);
      waiter.reject(new StoreUnavailableError('the store of files takes less than is being uploaded'));
    }, this.#reservationTimeoutMs);
    this.#waiters.push(waiter.resolve);
    try {
      await waiter.promise;
    } finally {
      clearTimeout(reclaimTimer);
      clearTimeout(timer);
    }
  }

  #reclaimLongestFillingPart(startedBeforeMs: number): void {
    const [longest] = this.#filling;
    if (longest === undefined || longest.fillingSinceMs >= startedBeforeMs) return;
    this.#filling.delete(longest);
    longest.reclaim();
  }

  #releaseSlot(): void {
    const next = this.#waiters.shift();
    if (next === undefined) this.#freeSlots += 1;
    else next();
  }
}
