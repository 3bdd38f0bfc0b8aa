import { KlatchError } from '../errors.ts';
import type { AccountId } from '../model/ids.ts';
import type { UploadStream } from './upload-stream.ts';

/**
 * This many bytes are added to the bytes of each upload when its speed is computed. So an upload that has just begun is
 * not the slowest.
 */
const HEAD_START_BYTES = 256 * 1024;
/** How long a new upload waits until the upload that it evicts has stored its bytes. */
const EVICTION_TIMEOUT_MS = 5_000;

/** The slot of one upload in progress. */
export class UploadPermit {
  readonly owner: AccountId;
  readonly #abortController = new AbortController();
  readonly #startedAt = performance.now();
  #stream: UploadStream | null = null;
  /**
   * Set when another upload evicts this upload. It is called when this slot is released, and hands it to the other
   * upload.
   */
  onSlotHandover: (() => void) | null = null;

  constructor(owner: AccountId) {
    this.owner = owner;
  }

  /** Is aborted when the upload is evicted. */
  get signal(): AbortSignal {
    return this.#abortController.signal;
  }

  get isEvicted(): boolean {
    return this.#abortController.signal.aborted;
  }

  get bytesPerMs(): number {
    return ((this.#stream?.receivedBytes ?? 0) + HEAD_START_BYTES) / (performance.now() - this.#startedAt + 1);
  }

  /** Sets the stream whose speed is from now on the speed of the upload. */
  readonly measureSpeedOf = (stream: UploadStream): void => {
    this.#stream = stream;
  };

  evict(reason: Error): void {
    this.#abortController.abort(reason);
  }
}

/**
 * Limits parallel uploads, in total and per owner. When all slots are taken, a new upload evicts another one: the
 * slowest upload of all owners that hold more slots than the new upload's owner. So slow uploads cannot block others,
 * however many there are, and restarting an upload gains nothing.
 */
export class UploadLimiter {
  readonly #maxTotal: number;
  readonly #maxPerOwner: number;
  readonly #permits = new Set<UploadPermit>();
  readonly #heldSlotsByOwner = new Map<AccountId, number>();
  #takenSlots = 0;

  constructor(bounds: { total: number; perOwner: number }) {
    this.#maxTotal = bounds.total;
    this.#maxPerOwner = bounds.perOwner;
  }

  /** The number of uploads that have a slot. */
  get running(): number {
    return this.#permits.size;
  }

  /**
   * Takes a slot, and evicts another upload if necessary. Throws `too_many_uploads`. The caller must pass the permit to
   * `release` when its upload ends.
   */
  async take(owner: AccountId): Promise<UploadPermit> {
    const held = this.#heldSlotsByOwner.get(owner) ?? 0;
    if (held >= this.#maxPerOwner) throw new KlatchError('too_many_uploads');
    const slowest = this.#takenSlots < this.#maxTotal ? null : this.#findEvictablePermit(held);
    if (this.#takenSlots >= this.#maxTotal && slowest === null) throw new KlatchError('too_many_uploads');
    const permit = new UploadPermit(owner);
    this.#heldSlotsByOwner.set(owner, held + 1);
    if (slowest === null) this.#takenSlots += 1;
    else if (!(await evictAndAwaitSlot(slowest))) {
      this.#decrementHeld(owner);
      throw new KlatchError('too_many_uploads');
    }
    this.#permits.add(permit);
    return permit;
  }

  /** Releases the slot of an upload. A repeated call does nothing. */
  release(permit: UploadPermit): void {
    if (!this.#permits.delete(permit)) return;
    this.#decrementHeld(permit.owner);
    if (permit.onSlotHandover === null) this.#takenSlots -= 1;
    else permit.onSlotHandover();
  }

  #decrementHeld(owner: AccountId): void {
    const left = this.#heldSlotsByOwner.get(owner)! - 1;
    if (left === 0) this.#heldSlotsByOwner.delete(owner);
    else this.#heldSlotsByOwner.set(owner, left);
  }

  #findEvictablePermit(requesterSlots: number): UploadPermit | null {
    let slowest: UploadPermit | null = null;
    for (const permit of this.#permits) {
      if (permit.isEvicted || this.#heldSlotsByOwner.get(permit.owner)! <= requesterSlots) continue;
      if (slowest === null || permit.bytesPerMs < slowest.bytesPerMs) slowest = permit;
    }
    return slowest;
  }
}

/**
 * Evicts the upload, and resolves to true when its slot is free for the caller. False: the slot was not released in
 * time.
 */
function evictAndAwaitSlot(permit: UploadPermit): Promise<boolean> {
  const sentence = 'All places for uploads are taken and this one was the slowest: please repeat it later';
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      permit.onSlotHandover = null;
      resolve(false);
    }, EVICTION_TIMEOUT_MS);
    permit.onSlotHandover = () => {
      clearTimeout(timer);
      resolve(true);
    };
    permit.evict(new KlatchError('too_many_uploads', { sentence }));
  });
}
