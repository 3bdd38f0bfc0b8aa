import type { Attempt } from '../outbound/delivery-client.ts';
import { isSlow, type Slots } from './slots.ts';

/** A slot that was taken; slow lanes have fewer of them. */
export type Slot = 'quick' | 'slow';

/** A lane's way to the slots: it knows whether the lane is slow, and lets go of its place when the lane is retired. */
export class LaneSlots {
  readonly #slots: Slots;
  readonly #host: string;
  readonly #waiting = new Set<(slot: null) => void>();
  #kind: Slot = 'quick';
  #stopped = false;

  constructor(slots: Slots, host: string) {
    this.#slots = slots;
    this.#host = host;
  }

  /** A slot, to be given back with `release`, at once where one is free; null when the lane, or the server, stops. */
  acquire(): Slot | null | Promise<Slot | null> {
    if (this.#stopped) return null;
    const kind = this.#kind;
    if (this.#slots.tryAcquire(this.#host, kind === 'slow')) return kind;
    return new Promise((resolve) => {
      this.#waiting.add(resolve);
      void this.#slots.acquire(this.#host, kind === 'slow').then((granted) => {
        if (this.#waiting.delete(resolve)) resolve(granted ? kind : null);
        // Nobody waits for it any more.
        else if (granted) this.release(kind);
      });
    });
  }

  release(slot: Slot): void {
    this.#slots.release(this.#host, slot === 'slow');
  }

  /** What the next slot is asked as. */
  learn(outcome: Attempt): void {
    this.#kind = isSlow(outcome) ? 'slow' : 'quick';
  }

  /** Sends away whoever waits, and whoever comes. */
  stop(): void {
    this.#stopped = true;
    for (const resolve of this.#waiting) resolve(null);
    this.#waiting.clear();
  }
}
