import { StoreUnavailableError } from './store.ts';

/** The most bytes in memory for the parts of all uploads together. */
export const PART_MEMORY_BYTES = 256 * 1024 * 1024;
const RESERVATION_TIMEOUT_MS = 30_000;
/**
 * The share of the time-out after which a waiting upload reclaims a slot: the rest suffices to store the part in that
 * slot.
 */
const RECLAIM_AFTER_SHARE = 2 / 3;

/** A slot for a part. */
export interface PartReservation {
  /** Called when the part is full: from here on only the store delays the part, and its slot is not reclaimed. */
  markFull(): void;
  /** Releases the slot. Called once. */
  release(): void;
}

/** A part that is being filled. */
interface FillingPart {
  readonly fillingSinceMs: number;
  readonly reclaim: () => void;
}

/**
 * Limits the parts that are in memory at once. An upload that needs one more slot waits for its turn and reads nothing
 * meanwhile, so parallel uploads get slower but use no more memory. Slow uploads do not block the others: an upload
 * that has waited for most of its time-out reclaims the slot of the part that has been filling for longest. It does so
 * only if that part has been filling for longer than the upload has waited.
 */
export class PartBufferPool {
  readonly #reservationTimeoutMs: number;
  readonly #waiters: (() => void)[] = [];
  /** The parts that are being filled, in the order in which their slots were taken. */
  readonly #filling = new Set<FillingPart>();
  #freeSlots: number;

  constructor(partBytes: number, reservationTimeoutMs = RESERVATION_TIMEOUT_MS) {
    // At least two, so that one part is filled while another is sent.
    this.#freeSlots = Math.max(2, Math.floor(PART_MEMORY_BYTES / partBytes));
    this.#reservationTimeoutMs = reservationTimeoutMs;
  }

  /**
   * Resolves when a slot is free. Rejects with StoreUnavailableError when none becomes free within the time-out.
   * `reclaim` is called at most once, before `markFull`: the upload that fills the slot then has to store its bytes,
   * and release the slot. `reclaim` null: the part is full already, and is never reclaimed.
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
