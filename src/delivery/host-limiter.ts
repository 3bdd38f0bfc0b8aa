import { maxSlowReceiverSlots } from '../outbound/slow-receivers.ts';

type OnGranted = (granted: boolean) => void;

interface HostState {
  readonly name: string;
  readonly quickWaiters: OnGranted[];
  readonly slowWaiters: OnGranted[];
  /** `active`: all requests in flight to this host. `slowActive`: those of slow lanes among them. */
  active: number;
  slowActive: number;
  /**
   * True if the host's last slot that `#grantNext` gave went to a slow lane. If both kinds of lanes wait, they
   * alternate.
   */
  lastGrantWasSlow: boolean;
}

/**
 * Decides which lane may send: a global bound of requests in flight and one for each host. Hosts take turns, and the
 * lanes of a host get slots in the order in which they came. So neither a slow host nor a busy one keeps others from
 * sending.
 *
 * Slow lanes (`isSlowReceiver`) share at most half of all slots, and half of each host's. Otherwise 16 hosts, each with
 * 16 hooks that answer just below the time-out, would hold all 256 slots for 15 s at a time. In the second that a slow
 * lane takes for one delivery, a slot of the quick half serves a hundred. So quick lanes hardly miss the slow half, and
 * receivers that are slow for honest reasons continue in parallel. Where both kinds of lanes wait, they alternate. A
 * hook counts as slow after its first slow attempt, so only that attempt takes a slot of the quick half.
 */
export class HostLimiter {
  readonly #max: number;
  readonly #perHost: number;
  readonly #maxSlow: number;
  readonly #slowPerHost: number;
  readonly #hosts = new Map<string, HostState>();
  /**
   * Hosts that had a waiting quick lane and a free slot when they were added. The first one gets the next slot.
   * `#grant` skips a host whose free slot was taken since it was added.
   */
  readonly #quickQueue = new Set<HostState>();
  /**
   * Hosts that had a waiting slow lane and a free slot when they were added. `#nextQueue` checks the bound for all slow
   * lanes together.
   */
  readonly #slowQueue = new Set<HostState>();
  readonly #granted = Promise.resolve(true);
  #active = 0;
  #slowActive = 0;
  #lastQueueWasSlow = false;
  #stopped = false;

  constructor(max: number, perHost: number) {
    this.#max = max;
    this.#perHost = perHost;
    this.#maxSlow = maxSlowReceiverSlots(max);
    this.#slowPerHost = maxSlowReceiverSlots(perHost);
  }

  /** Requests in flight to all hosts. */
  get active(): number {
    return this.#active;
  }

  /** Requests in flight of slow lanes, to all hosts. */
  get slowActive(): number {
    return this.#slowActive;
  }

  /** The number of callers that wait for a slot, at all hosts. */
  get waiting(): number {
    let waiting = 0;
    for (const host of this.#hosts.values()) waiting += host.quickWaiters.length + host.slowWaiters.length;
    return waiting;
  }

  /**
   * Takes a slot if one is free. Returns false when none is free, or the server stops.
   *
   * @param slow result of `isSlowReceiver` for the caller's last attempt; false if the caller made no attempt yet. Pass
   *   the same value to `release`.
   */
  tryAcquire(hostName: string, slow = false): boolean {
    if (this.#stopped) return false;
    const host = this.#hostOf(hostName);
    // If a lane waits although a slot is free, it may not use that slot (a bound for its host or for slow lanes). So
    // this caller overtakes nobody.
    if (!this.#hasCapacity(host, slow)) return false;
    this.#take(host, slow);
    return true;
  }

  /** Waits for a slot; true once the caller has it and must release it, false when the server stops. */
  acquire(hostName: string, slow = false): Promise<boolean> {
    if (this.tryAcquire(hostName, slow)) return this.#granted;
    return new Promise((resolve) => this.wait(hostName, slow, resolve));
  }

  /**
   * Waits after a failed `tryAcquire`. Calls `granted` with true in the middle of another caller's `release`, with
   * false when the server stops.
   */
  wait(hostName: string, slow: boolean, granted: (isOurs: boolean) => void): void {
    if (this.#stopped) return granted(false);
    const host = this.#hostOf(hostName);
    (slow ? host.slowWaiters : host.quickWaiters).push(granted);
    this.#enqueue(host);
  }

  release(hostName: string, slow = false): void {
    const host = this.#hosts.get(hostName);
    const held = host === undefined ? 0 : slow ? host.slowActive : host.active - host.slowActive;
    if (host === undefined || held === 0) throw new Error('released a slot that was not taken');
    host.active -= 1;
    this.#active -= 1;
    if (slow) {
      host.slowActive -= 1;
      this.#slowActive -= 1;
    }
    this.#enqueue(host);
    this.#grant();
    if (host.active === 0 && host.quickWaiters.length === 0 && host.slowWaiters.length === 0)
      this.#hosts.delete(hostName);
  }

  /** Refuses all waiting callers. Callers still release the slots that they hold. */
  stop(): void {
    this.#stopped = true;
    this.#quickQueue.clear();
    this.#slowQueue.clear();
    for (const host of this.#hosts.values()) {
      for (const resolve of host.quickWaiters.splice(0)) resolve(false);
      for (const resolve of host.slowWaiters.splice(0)) resolve(false);
    }
  }

  #hostOf(name: string): HostState {
    let host = this.#hosts.get(name);
    if (host === undefined) {
      host = { name, quickWaiters: [], slowWaiters: [], active: 0, slowActive: 0, lastGrantWasSlow: false };
      this.#hosts.set(name, host);
    }
    return host;
  }

  #hasCapacity(host: HostState, slow: boolean): boolean {
    if (this.#active >= this.#max || host.active >= this.#perHost) return false;
    return !slow || (this.#slowActive < this.#maxSlow && host.slowActive < this.#slowPerHost);
  }

  #take(host: HostState, slow: boolean): void {
    host.active += 1;
    this.#active += 1;
    if (!slow) return;
    host.slowActive += 1;
    this.#slowActive += 1;
  }

  #enqueue(host: HostState): void {
    if (host.active >= this.#perHost) return;
    if (host.quickWaiters.length > 0) this.#quickQueue.add(host);
    if (host.slowWaiters.length > 0 && host.slowActive < this.#slowPerHost) this.#slowQueue.add(host);
  }

  #grant(): void {
    while (this.#active < this.#max) {
      const queue = this.#nextQueue();
      if (queue === null) return;
      const [host] = queue;
      // The host is removed and added again, so that it moves to the end of the queue.
      queue.delete(host!);
      this.#grantNext(host!);
      this.#enqueue(host!);
    }
  }

  /**
   * Returns the queue whose first host gets the next slot; null: no host can get one. While both queues have hosts,
   * `#quickQueue` and `#slowQueue` alternate.
   */
  #nextQueue(): Set<HostState> | null {
    const quick = this.#quickQueue.size > 0;
    const slow = this.#slowQueue.size > 0 && this.#slowActive < this.#maxSlow;
    if (!quick && !slow) return null;
    this.#lastQueueWasSlow = slow && !(quick && this.#lastQueueWasSlow);
    return this.#lastQueueWasSlow ? this.#slowQueue : this.#quickQueue;
  }

  /**
   * Gives a free slot of a host to a waiting lane. Quick and slow lanes of the host take turns, whichever queue
   * `#grant` took the host from. Otherwise lanes of one kind could always get the host's free slot.
   */
  #grantNext(host: HostState): void {
    const quick = host.quickWaiters.length > 0 && this.#hasCapacity(host, false);
    const slow = host.slowWaiters.length > 0 && this.#hasCapacity(host, true);
    if (!quick && !slow) return;
    host.lastGrantWasSlow = slow && !(quick && host.lastGrantWasSlow);
    const resolve = (host.lastGrantWasSlow ? host.slowWaiters : host.quickWaiters).shift()!;
    this.#take(host, host.lastGrantWasSlow);
    resolve(true);
  }
}
