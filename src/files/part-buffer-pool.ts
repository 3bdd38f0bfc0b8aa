import { StoreUnavailableError } from './store.ts';

/** The most bytes in memory for the parts of all uploads together. */
export const TOTAL_PART_MEMORY_BYTES = 256 * 1024 * 1024;
const RESERVATION_TIMEOUT_MS = 30_000;
/**
 * After this share of its time-out, a waiting upload takes the slot of an upload whose part is not full. In the rest of
 * the time, that upload sends the bytes of its slot to the store and releases the slot.
 */
const RECLAIM_AFTER_TIMEOUT_SHARE = 2 / 3;

/** A slot in memory for one part of an S3 upload. */
export interface PartReservation {
  /**
   * Must be called when the part is full. From then on the slot is not reclaimed, since only the store can delay the
   * part.
   */
  markFull(): void;
  /** Releases the slot. Must be called exactly once. */
  release(): void;
}

/** A part into which an upload's bytes are still arriving. */
interface FillingPart {
  readonly fillingSinceMs: number;
  readonly reclaim: () => void;
}

/**
 * Limits the parts of uploads that are in memory at once. An upload that needs a slot waits for its turn and reads
 * nothing meanwhile. So parallel uploads get slower, but use no more memory. Slow uploads do not block the others. An
 * upload that has waited for most of its time-out reclaims the slot whose part has been filling for longest, if that
 * time is longer than the upload's own wait.
 */
export class PartBufferPool {
  readonly #reservationTimeoutMs: number;
  readonly #waiters: (() => void)[] = [];
  /** The parts that are being filled, in the order in which their slots were taken. */
  readonly #filling = new Set<FillingPart>();
  #freeSlots: number;

  constructor(partBytes: number, reservationTimeoutMs = RESERVATION_TIMEOUT_MS) {
    // At least two slots, so that one part is filled while another is sent.
    this.#freeSlots = Math.max(2, Math.floor(TOTAL_PART_MEMORY_BYTES / partBytes));
    this.#reservationTimeoutMs = reservationTimeoutMs;
  }

  /**
   * Takes a slot, and waits until one is free. Rejects with StoreUnavailableError when none becomes free within the
   * time-out. The pool may call `reclaim` once before `markFull`: the upload then has to store the bytes that it has,
   * and release the slot. `reclaim` null: the part is full already, so its slot is never reclaimed.
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
    const waitStartedMs = performance.now();
    const reclaimTimer = setTimeout(
      () => this.#reclaimLongestFillingPart(waitStartedMs),
      this.#reservationTimeoutMs * RECLAIM_AFTER_TIMEOUT_SHARE,
    );
    const timeoutTimer = setTimeout(() => {
      this.#waiters.splice(this.#waiters.indexOf(waiter.resolve), 1);
      waiter.reject(new StoreUnavailableError('the store of files takes less than is being uploaded'));
    }, this.#reservationTimeoutMs);
    this.#waiters.push(waiter.resolve);
    try {
      await waiter.promise;
    } finally {
      clearTimeout(reclaimTimer);
      clearTimeout(timeoutTimer);
    }
  }

  #reclaimLongestFillingPart(startedBeforeMs: number): void {
    const [longest] = this.#filling;
    if (longest === undefined || longest.fillingSinceMs >= startedBeforeMs) return;
    this.#filling.delete(longest);
    longest.reclaim();
  }

  #releaseSlot(): void {
    const wakeNextWaiter = this.#waiters.shift();
    if (wakeNextWaiter === undefined) this.#freeSlots += 1;
    else wakeNextWaiter();
  }
}
