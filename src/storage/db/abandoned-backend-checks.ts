/** From one look at a transaction that stands still to the next: a look is cheap, and leaves nothing behind. */
const FIRST_RECHECK_INTERVAL_MS = 250;
const LONGEST_RECHECK_INTERVAL_MS = 2_000;

/** When a connection looks whether its server is done with a transaction that stood still. */
export class AbandonedBackendChecks {
  #intervalMs = 0;
  #nextAtMs = Number.NEGATIVE_INFINITY;
  #rejectionMessage = '';

  /** True: it stood still at the last look, and it is too early for the next one. */
  get isTooEarlyToRecheck(): boolean {
    return this.#intervalMs > 0 && performance.now() < this.#nextAtMs;
  }

  /** What callers are told until then. */
  get rejectionMessage(): string {
    return this.#rejectionMessage;
  }

  /** It stands still: looked at again after a while, which is longer each time. */
  found(): void {
    this.#intervalMs = Math.min(LONGEST_RECHECK_INTERVAL_MS, Math.max(FIRST_RECHECK_INTERVAL_MS, 2 * this.#intervalMs));
  }

  /** The while begins now: the other servers that were asked may have taken their time. */
  begin(rejectionMessage: string): void {
    this.#rejectionMessage = rejectionMessage;
    this.#nextAtMs = performance.now() + this.#intervalMs;
  }

  end(): void {
    this.#intervalMs = 0;
  }
}
