/** A copy whose database, disk or reader takes nothing for this long is given up. */
const STALL_MS = 10 * 60_000;
const LOOKS = 20;

/**
 * Bounds a copy that may take hours: not by its time, but by how long nothing moves. `moved` is called for every piece;
 * `signal` is aborted with an error, also by `abort` for another reason.
 */
export class StallDetector {
  readonly #controller = new AbortController();
  readonly #timeoutMs: number;
  readonly #stalled: () => Error;
  #lastMs = performance.now();
  #timer: NodeJS.Timeout | null = null;

  constructor(stalled: () => Error, timeoutMs = STALL_MS) {
    this.#stalled = stalled;
    this.#timeoutMs = timeoutMs;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  start(): void {
    this.moved();
    this.#timer ??= setInterval(() => {
      if (performance.now() - this.#lastMs > this.#timeoutMs) this.abort(this.#stalled());
    }, this.#timeoutMs / LOOKS);
  }

  moved(): void {
    this.#lastMs = performance.now();
  }

  abort(reason: Error): void {
    this.#controller.abort(reason);
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}
