import { KlatchError } from '../errors.ts';
import type { AccountId } from '../model/ids.ts';
import type { UploadStream } from './upload-stream.ts';

/** Added to what an upload has brought, so that one that has just begun is not the slowest. */
const HEAD_START_BYTES = 256 * 1024;
/** How long a new upload waits until the one that is ended has put away what it had. */
const HANDOVER_MS = 5_000;

/** The place of one upload that is under way. */
export class UploadPermit {
  readonly owner: AccountId;
  readonly #abortController = new AbortController();
  readonly #startedAt = performance.now();
  #stream: UploadStream | null = null;
  /** Takes the place over as soon as it is left. */
  successor: (() => void) | null = null;

  constructor(owner: AccountId) {
    this.owner = owner;
  }

  /** Aborts when the upload has to make room. */
  get signal(): AbortSignal {
    return this.#abortController.signal;
  }

  get isEnding(): boolean {
    return this.#abortController.signal.aborted;
  }

  get bytesPerMs(): number {
    return ((this.#stream?.total ?? 0) + HEAD_START_BYTES) / (performance.now() - this.#startedAt + 1);
  }

  /** From now on the upload is as fast as what comes here. */
  readonly measure = (stream: UploadStream): void => {
    this.#stream = stream;
  };

  end(reason: Error): void {
    this.#abortController.abort(reason);
  }
}

/**
 * Uploads at once, in all and of one owner. When all places are taken, a new upload ends the slowest one of those whose
 * owners hold more places than its own owner: many slow uploads shut nobody out, and nobody gains by starting again.
 */
export class UploadLimiter {
  readonly #total: number;
  readonly #perOwner: number;
  readonly #permits = new Set<UploadPermit>();
  readonly #held = new Map<AccountId, number>();
  #taken = 0;

  constructor(bounds: { total: number; perOwner: number }) {
    this.#total = bounds.total;
    this.#perOwner = bounds.perOwner;
  }

  /** Uploads that have a place. */
  get running(): number {
    return this.#permits.size;
  }

  /** Throws `too_many_uploads`. Whoever gets a place leaves it in the end. */
  async take(owner: AccountId): Promise<UploadPermit> {
    const held = this.#held.get(owner) ?? 0;
    if (held >= this.#perOwner) throw new KlatchError('too_many_uploads');
    const slowest = this.#taken < this.#total ? null : this.#slowest(held);
    if (this.#taken >= this.#total && slowest === null) throw new KlatchError('too_many_uploads');
    const permit = new UploadPermit(owner);
    this.#held.set(owner, held + 1);
    if (slowest === null) this.#taken += 1;
    else if (!(await awaitRelease(slowest))) {
      this.#decrement(owner);
      throw new KlatchError('too_many_uploads');
    }
    this.#permits.add(permit);
    return permit;
  }

  /** May be called again. */
  release(permit: UploadPermit): void {
    if (!this.#permits.delete(permit)) return;
    this.#decrement(permit.owner);
    if (permit.successor === null) this.#taken -= 1;
    else permit.successor();
  }

  #decrement(owner: AccountId): void {
    const left = this.#held.get(owner)! - 1;
    if (left === 0) this.#held.delete(owner);
    else this.#held.set(owner, left);
  }

  #slowest(held: number): UploadPermit | null {
    let slowest: UploadPermit | null = null;
    for (const permit of this.#permits) {
      if (permit.isEnding || this.#held.get(permit.owner)! <= held) continue;
      if (slowest === null || permit.bytesPerMs < slowest.bytesPerMs) slowest = permit;
    }
    return slowest;
  }
}

/** Ends the upload and resolves when its place is free for the caller; false: it takes too long. */
function awaitRelease(permit: UploadPermit): Promise<boolean> {
  const sentence = 'All places for uploads are taken and this one was the slowest: please repeat it later';
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      permit.successor = null;
      resolve(false);
    }, HANDOVER_MS);
    permit.successor = () => {
      clearTimeout(timer);
      resolve(true);
    };
    permit.end(new KlatchError('too_many_uploads', { sentence }));
  });
}
