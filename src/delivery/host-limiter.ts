import { maxSlowReceiverSlots } from '../outbound/slow-receivers.ts';

type OnGranted = (granted: boolean) => void;

interface HostState {
  readonly hostName: string;
  readonly quickWaiters: OnGranted[];
  readonly slowWaiters: OnGranted[];
  /** `inFlightCount`: all requests in flight to this host. `slowInFlightCount`: those of slow lanes among them. */
  inFlightCount: number;
  slowInFlightCount: number;
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
  readonly #maxInFlight: number;
  readonly #maxInFlightPerHost: number;
  readonly #maxSlowInFlight: number;
  readonly #maxSlowInFlightPerHost: number;
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
  #inFlightCount = 0;
  #slowInFlightCount = 0;
  #lastQueueWasSlow = false;
  #stopped = false;

  constructor(maxInFlight: number, maxInFlightPerHost: number) {
    this.#maxInFlight = maxInFlight;
    this.#maxInFlightPerHost = maxInFlightPerHost;
    this.#maxSlowInFlight = maxSlowReceiverSlots(maxInFlight);
    this.#maxSlowInFlightPerHost = maxSlowReceiverSlots(maxInFlightPerHost);
  }

  /** Requests in flight to all hosts. */
  get inFlightCount(): number {
    return this.#inFlightCount;
  }

  /** Requests in flight of slow lanes, to all hosts. */
  get slowInFlightCount(): number {
    return this.#slowInFlightCount;
  }

  /** The number of callers that wait for a slot, at all hosts. */
  get waiterCount(): number {
    let waiterCount = 0;
    for (const host of this.#hosts.values()) waiterCount += host.quickWaiters.length + host.slowWaiters.length;
    return waiterCount;
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
   * Waits after a failed `tryAcquire`. Calls `onGranted` with true in the middle of another caller's `release`, with
   * false when the server stops.
   */
  wait(hostName: string, slow: boolean, onGranted: (isGranted: boolean) => void): void {
    if (this.#stopped) return onGranted(false);
    const host = this.#hostOf(hostName);
    (slow ? host.slowWaiters : host.quickWaiters).push(onGranted);
    this.#enqueue(host);
  }

  release(hostName: string, slow = false): void {
    const host = this.#hosts.get(hostName);
    const held = host === undefined ? 0 : slow ? host.slowInFlightCount : host.inFlightCount - host.slowInFlightCount;
    if (host === undefined || held === 0) throw new Error('released a slot that was not taken');
    host.inFlightCount -= 1;
    this.#inFlightCount -= 1;
    if (slow) {
      host.slowInFlightCount -= 1;
      this.#slowInFlightCount -= 1;
    }
    this.#enqueue(host);
    this.#grant();
    if (host.inFlightCount === 0 && host.quickWaiters.length === 0 && host.slowWaiters.length === 0)
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
      host = {
        hostName: name,
        quickWaiters: [],
        slowWaiters: [],
        inFlightCount: 0,
        slowInFlightCount: 0,
        lastGrantWasSlow: false,
      };
      this.#hosts.set(name, host);
    }
    return host;
  }

  #hasCapacity(host: HostState, slow: boolean): boolean {
    if (this.#inFlightCount >= this.#maxInFlight || host.inFlightCount >= this.#maxInFlightPerHost) return false;
    return (
      !slow ||
      (this.#slowInFlightCount < this.#maxSlowInFlight && host.slowInFlightCount < this.#maxSlowInFlightPerHost)
    );
  }

  #take(host: HostState, slow: boolean): void {
    host.inFlightCount += 1;
    this.#inFlightCount += 1;
    if (!slow) return;
    host.slowInFlightCount += 1;
    this.#slowInFlightCount += 1;
  }

  #enqueue(host: HostState): void {
    if (host.inFlightCount >= this.#maxInFlightPerHost) return;
    if (host.quickWaiters.length > 0) this.#quickQueue.add(host);
    if (host.slowWaiters.length > 0 && host.slowInFlightCount < this.#maxSlowInFlightPerHost) this.#slowQueue.add(host);
  }

  #grant(): void {
    while (this.#inFlightCount < this.#maxInFlight) {
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
    const slow = this.#slowQueue.size > 0 && this.#slowInFlightCount < this.#maxSlowInFlight;
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
