/** A copy is aborted if its database, disk or reader makes no progress for this long. */
const STALL_TIMEOUT_MS = 10 * 60_000;
const CHECKS_PER_TIMEOUT = 20;

/**
 * Limits a copy that may take hours: not its total time, but the time without progress. The copy calls `recordProgress`
 * for every piece. `signal` is aborted with the error of a stall, or with the reason given to `abort`.
 */
export class StallDetector {
  readonly #controller = new AbortController();
  readonly #timeoutMs: number;
  readonly #createError: () => Error;
  #lastProgressMs = performance.now();
  #timer: NodeJS.Timeout | null = null;

  constructor(createError: () => Error, timeoutMs = STALL_TIMEOUT_MS) {
    this.#createError = createError;
    this.#timeoutMs = timeoutMs;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  start(): void {
    this.recordProgress();
    this.#timer ??= setInterval(() => {
      if (performance.now() - this.#lastProgressMs > this.#timeoutMs) this.abort(this.#createError());
    }, this.#timeoutMs / CHECKS_PER_TIMEOUT);
  }

  recordProgress(): void {
    this.#lastProgressMs = performance.now();
  }

  abort(reason: Error): void {
    this.#controller.abort(reason);
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}
