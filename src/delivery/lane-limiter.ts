import { BoundedCache } from '../model/bounded-cache.ts';
import type { HookId } from '../model/ids.ts';
import type { HttpAttemptOutcome } from '../outbound/delivery-client.ts';
import { isSlowReceiver } from '../outbound/slow-receivers.ts';
import type { HostLimiter } from './host-limiter.ts';

/** The kind of a slot: a lane whose hook's last attempt was slow takes slow slots, of which there are fewer. */
export type SlotKind = 'quick' | 'slow';

/** The most hooks that are remembered as slow. The hook that was slow longest ago is dropped first. */
const MAX_REMEMBERED_HOOKS = 10_000;

/**
 * Hooks whose last attempt was slow. A hook gets a new lane after a change or an idle time, and is remembered
 * nevertheless. Otherwise each new lane would first take a quick slot.
 */
export class SlowHooks extends BoundedCache<HookId, true> {
  constructor() {
    super(MAX_REMEMBERED_HOOKS);
  }
}

/**
 * Takes slots for one lane: quick or slow ones, by the last attempt of the lane's hook. Stops waiting when the lane is
 * retired.
 */
export class LaneLimiter {
  readonly #limiter: HostLimiter;
  readonly #lane: { readonly id: HookId; readonly host: string };
  readonly #slow: SlowHooks;
  readonly #waiters = new Set<(slot: null) => void>();
  #stopped = false;

  constructor(limiter: HostLimiter, lane: { readonly id: HookId; readonly host: string }, slow: SlowHooks) {
    this.#limiter = limiter;
    this.#lane = lane;
    this.#slow = slow;
  }

  /**
   * Takes a slot, which the caller gives back with `release`. Returns the slot synchronously if one is free; null when
   * the lane or the server stops.
   */
  acquire(): SlotKind | null | Promise<SlotKind | null> {
    if (this.#stopped) return null;
    const slot = this.#slow.has(this.#lane.id) ? 'slow' : 'quick';
    if (this.#limiter.tryAcquire(this.#lane.host, slot === 'slow')) return slot;
    return new Promise((resolve) => {
      this.#waiters.add(resolve);
      this.#limiter.wait(this.#lane.host, slot === 'slow', (granted) => {
        if (this.#waiters.delete(resolve)) resolve(granted ? slot : null);
        // The lane no longer waits, so the slot is released. The release is deferred, since this callback runs in the
        // middle of another lane's `release`.
        else if (granted) queueMicrotask(() => this.release(slot));
      });
    });
  }

  release(slot: SlotKind): void {
    this.#limiter.release(this.#lane.host, slot === 'slow');
  }

  /** Decides by an attempt's outcome whether the lane's next slot is a quick or a slow one. */
  markHookSlowOrQuick(outcome: HttpAttemptOutcome): void {
    if (isSlowReceiver(outcome)) this.#slow.set(this.#lane.id, true);
    else this.#slow.delete(this.#lane.id);
  }

  /** Ends all waiting calls of `acquire` and all later ones with null. */
  stop(): void {
    this.#stopped = true;
    for (const resolve of this.#waiters) resolve(null);
    this.#waiters.clear();
  }
}
