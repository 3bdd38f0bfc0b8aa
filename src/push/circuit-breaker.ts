/**
 * The first pause before an unavailable vendor gets one push as a probe; shorter if the first delay of `push.retry` is.
 * Each failed probe doubles the pause.
 */
const MIN_BACKOFF_MS = 1_000;
/**
 * The longest pause between two probes, and the longest Retry-After of the vendor that is honoured. A wrong Retry-After
 * must not delay pushes for a day.
 */
const MAX_BACKOFF_WITHOUT_RETRY_AFTER_MS = 60_000;
const MAX_RETRY_AFTER_MS = 3_600_000;

/**
 * Holds pushes back from a vendor that has a problem as a whole. After a pause one push probes the vendor, and each
 * failed probe doubles the pause. If several pushes were in flight when the pause began, their failures count as one.
 * Times are monotonic.
 */
export class CircuitBreaker {
  readonly #minBackoffMs: number;
  readonly #now: () => number;
  #backoffsInRow = 0;
  #backoffStartedAtMs = -Infinity;
  #backoffUntilMs = -Infinity;

  constructor(retryDelaysMs: readonly number[], now: () => number = () => performance.now()) {
    this.#minBackoffMs = Math.min(MIN_BACKOFF_MS, retryDelaysMs[0] ?? MIN_BACKOFF_MS);
    this.#now = now;
  }

  /** How many pushes may be in flight now: any number, none during a pause, or one as a probe. */
  get allowedInFlight(): number {
    if (this.#backoffsInRow === 0) return Infinity;
    return this.remainingBackoffMs > 0 ? 0 : 1;
  }

  /** The remaining milliseconds of the pause; 0: there is no pause. */
  get remainingBackoffMs(): number {
    return this.#backoffsInRow === 0 ? 0 : Math.max(0, this.#backoffUntilMs - this.#now());
  }

  /**
   * Records that the vendor works: its answer was a success, or concerned only one push. Returns true if the vendor had
   * a problem before.
   */
  recordSuccessDetectingRecovery(): boolean {
    const hadProblem = this.#backoffsInRow > 0;
    this.#backoffsInRow = 0;
    return hadProblem;
  }

  /**
   * Records that a push that was sent at `sentAtMs` failed because the vendor as a whole has a problem. Returns true
   * for for the first such failure.
   */
  recordFailureDetectingOutage(sentAtMs: number, retryAfterMs: number | null): boolean {
    const now = this.#now();
    const isFirst = this.#backoffsInRow === 0;
    if (isFirst || sentAtMs >= this.#backoffStartedAtMs) {
      const remainingBackoffMs = Math.min(
        this.#minBackoffMs * 2 ** Math.min(this.#backoffsInRow, 20),
        MAX_BACKOFF_WITHOUT_RETRY_AFTER_MS,
      );
      this.#backoffsInRow += 1;
      this.#backoffStartedAtMs = now;
      this.#backoffUntilMs = now + remainingBackoffMs;
    }
    const retryAfterBoundMs = Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
    this.#backoffUntilMs = Math.max(this.#backoffUntilMs, now + retryAfterBoundMs);
    return isFirst;
  }
}
