/** A vendor that is away is asked again with one push, at first after so long, then after twice as long each time … */
const MIN_BACKOFF_MS = 1_000;
/** … and after so long at most; or as long as it says itself, which a garbled answer must not make a day. */
const MAX_BACKOFF_WITHOUT_RETRY_AFTER_MS = 60_000;
const MAX_RETRY_AFTER_MS = 3_600_000;

/**
 * Keeps pushes from a vendor that has a problem as a whole: after a rest one push asks whether it is over, and each
 * failure of such a one doubles the rest. Failures of what was sent before the rest began count once. Times are monotonic.
 */
export class CircuitBreaker {
  readonly #minBackoffMs: number;
  readonly #now: () => number;
  #backoffsInRow = 0;
  #backoffStartedMs = -Infinity;
  #backoffUntilMs = -Infinity;

  constructor(retryDelaysMs: readonly number[], now: () => number = () => performance.now()) {
    this.#minBackoffMs = Math.min(MIN_BACKOFF_MS, retryDelaysMs[0] ?? MIN_BACKOFF_MS);
    this.#now = now;
  }

  /** How many pushes may be under way at once right now. */
  get allowedInFlight(): number {
    if (this.#backoffsInRow === 0) return Infinity;
    return this.remainingBackoffMs > 0 ? 0 : 1;
  }

  /** How much longer the vendor is left alone; 0: not. */
  get remainingBackoffMs(): number {
    return this.#backoffsInRow === 0 ? 0 : Math.max(0, this.#backoffUntilMs - this.#now());
  }

  /** The vendor answered something that is about one push. True: it had a problem before. */
  recordSuccessDetectingRecovery(): boolean {
    const hadProblem = this.#backoffsInRow > 0;
    this.#backoffsInRow = 0;
    return hadProblem;
  }

  /** A push that was sent at `sentMs` met a problem of the vendor as a whole. True: this is the first of them. */
  recordFailureDetectingOutage(sentMs: number, retryAfterMs: number | null): boolean {
    const now = this.#now();
    const isFirst = this.#backoffsInRow === 0;
    if (isFirst || sentMs >= this.#backoffStartedMs) {
      const remainingBackoffMs = Math.min(
        this.#minBackoffMs * 2 ** Math.min(this.#backoffsInRow, 20),
        MAX_BACKOFF_WITHOUT_RETRY_AFTER_MS,
      );
      this.#backoffsInRow += 1;
      this.#backoffStartedMs = now;
      this.#backoffUntilMs = now + remainingBackoffMs;
    }
    const retryAfterBoundMs = Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
    this.#backoffUntilMs = Math.max(this.#backoffUntilMs, now + retryAfterBoundMs);
    return isFirst;
  }
}
