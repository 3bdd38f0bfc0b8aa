import { maxSlowReceiverSlots } from '../outbound/slow-receivers.ts';

type OnGranted = (granted: boolean) => void;

interface HostState {
  readonly name: string;
  readonly quickWaiters: OnGranted[];
  readonly slowWaiters: OnGranted[];
  /** Requests in flight, and how many of them are slow lanes'. */
  active: number;
  slowActive: number;
  /** Which of its lanes got a slot last, when both kinds waited. */
  lastGrantWasSlow: boolean;
}

/**
 * Who may send now: a global bound of requests in flight and one for each host. Hosts take turns, and the lanes of a
 * host in the order they came, so that neither a slow host nor a busy one keeps others from sending.
 *
 * Slow lanes share at most half of the slots, and half of a host's. Without that, 16 hosts whose 16 hooks each answer
 * just below the time-out hold all 256 for 15 s at a time, and everybody waits for them. Half, since a slot that is
 * left to quick lanes serves a hundred deliveries in the second that a slow one takes for one: they hardly miss the
 * other half, while receivers that are slow for honest reasons go on in parallel. Where both kinds wait, they
 * alternate. A hook is known to be slow after its first slow attempt, so that only that one takes from the quick half.
 */
export class HostLimiter {
  readonly #max: number;
  readonly #perHost: number;
  readonly #maxSlow: number;
  readonly #slowPerHost: number;
  readonly #hosts = new Map<string, HostState>();
  /** Hosts with a quick lane that waits and room for it, in turn; some have lost the room since and are passed over. */
  readonly #quickQueue = new Set<HostState>();
  /** The same of slow lanes. Room among all slow ones is not asked here. */
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

  /** Requests in flight. */
  get active(): number {
    return this.#active;
  }

  /** Of these, the ones of slow lanes. */
  get slowActive(): number {
    return this.#slowActive;
  }

  /** Callers that wait for a slot. */
  get waiting(): number {
    let waiting = 0;
    for (const host of this.#hosts.values()) waiting += host.quickWaiters.length + host.slowWaiters.length;
    return waiting;
  }

  /**
   * Takes a slot that is free now; false when there is none, or the server stops.
   *
   * @param slow what `isSlowReceiver` says of the caller's last attempt; false when there was none. `release` has to be
   *   told the same.
   */
  tryAcquire(hostName: string, slow = false): boolean {
    if (this.#stopped) return false;
    const host = this.#hostOf(hostName);
    // Whoever waits while a slot is free waits for room that is not this one's, so nobody is passed.
    if (!this.#hasCapacity(host, slow)) return false;
    this.#take(host, slow);
    return true;
  }

  /** Waits for a slot; true once it is ours and has to be released, false when the server stops. */
  acquire(hostName: string, slow = false): Promise<boolean> {
    if (this.tryAcquire(hostName, slow)) return this.#granted;
    return new Promise((resolve) => this.wait(hostName, slow, resolve));
  }

  /** The same for one that was not free a moment ago: `granted` is told, in the middle of somebody's `release`. */
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

  /** Sends everybody away who waits. Slots that are taken are still to be released. */
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
      // Taken out and queued again: to the end of the line of hosts.
      queue.delete(host!);
      this.#grantNext(host!);
      this.#enqueue(host!);
    }
  }

  /** The line whose first host is next: they alternate. */
  #nextQueue(): Set<HostState> | null {
    const quick = this.#quickQueue.size > 0;
    const slow = this.#slowQueue.size > 0 && this.#slowActive < this.#maxSlow;
    if (!quick && !slow) return null;
    this.#lastQueueWasSlow = slow && !(quick && this.#lastQueueWasSlow);
    return this.#lastQueueWasSlow ? this.#slowQueue : this.#quickQueue;
  }

  /** Whichever line it came from: its kinds of lanes alternate too, or one could always be first to a slot of the host. */
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
