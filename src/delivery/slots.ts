interface Host {
  readonly name: string;
  readonly waiting: ((granted: boolean) => void)[];
  active: number;
}

/**
 * Who may send now: a global bound of requests in flight and one for each host. Hosts take turns, and the lanes of a
 * host in the order they came, so that neither a slow host nor a busy one keeps others from sending.
 */
export class Slots {
  readonly #max: number;
  readonly #perHost: number;
  readonly #hosts = new Map<string, Host>();
  /** Hosts that have somebody waiting and room for one more, in turn. */
  readonly #turns = new Set<Host>();
  #active = 0;
  #stopped = false;

  constructor(max: number, perHost: number) {
    this.#max = max;
    this.#perHost = perHost;
  }

  /** Requests in flight. */
  get active(): number {
    return this.#active;
  }

  /** Callers that wait for a slot. */
  get waiting(): number {
    let waiting = 0;
    for (const host of this.#hosts.values()) waiting += host.waiting.length;
    return waiting;
  }

  /** Waits for a slot; true once it is ours and has to be released, false when the server stops. */
  acquire(hostName: string): Promise<boolean> {
    if (this.#stopped) return Promise.resolve(false);
    const host = this.#hosts.get(hostName) ?? { name: hostName, waiting: [], active: 0 };
    this.#hosts.set(hostName, host);
    return new Promise((resolve) => {
      host.waiting.push(resolve);
      this.#queue(host);
      this.#grant();
    });
  }

  release(hostName: string): void {
    const host = this.#hosts.get(hostName);
    if (host === undefined || host.active === 0) throw new Error('released a slot that was not taken');
    host.active -= 1;
    this.#active -= 1;
    this.#queue(host);
    if (host.active === 0 && host.waiting.length === 0) this.#hosts.delete(hostName);
    this.#grant();
  }

  /** Sends everybody away who waits. Slots that are taken are still to be released. */
  stop(): void {
    this.#stopped = true;
    this.#turns.clear();
    for (const host of this.#hosts.values()) for (const resolve of host.waiting.splice(0)) resolve(false);
  }

  #queue(host: Host): void {
    if (host.waiting.length > 0 && host.active < this.#perHost) this.#turns.add(host);
  }

  #grant(): void {
    while (this.#active < this.#max) {
      const [host] = this.#turns;
      if (host === undefined) return;
      // Taken out and queued again: to the end of the line of hosts.
      this.#turns.delete(host);
      const resolve = host.waiting.shift();
      if (resolve === undefined) continue;
      host.active += 1;
      this.#active += 1;
      this.#queue(host);
      resolve(true);
    }
  }
}
