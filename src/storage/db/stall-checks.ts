/** From one look at a transaction that stands still to the next: a look is cheap, and leaves nothing behind. */
const FIRST_INTERVAL_MS = 250;
const MAX_INTERVAL_MS = 2_000;

/** When a connection looks whether its server is done with a transaction that stood still. */
export class StallChecks {
  #intervalMs = 0;
  #nextAtMs = Number.NEGATIVE_INFINITY;
  #message = '';

  /** True: it stood still at the last look, and it is too early for the next one. */
  get isWaiting(): boolean {
    return this.#intervalMs > 0 && performance.now() < this.#nextAtMs;
  }

  /** What callers are told until then. */
  get message(): string {
    return this.#message;
  }

  /** It stands still: looked at again after a while, which is longer each time. */
  found(): void {
    this.#intervalMs = Math.min(MAX_INTERVAL_MS, Math.max(FIRST_INTERVAL_MS, 2 * this.#intervalMs));
  }

  /** The while begins now: the other servers that were asked may have taken their time. */
  begin(message: string): void {
    this.#message = message;
    this.#nextAtMs = performance.now() + this.#intervalMs;
  }

  end(): void {
    this.#intervalMs = 0;
  }
}
