/**
 * The first interval between two checks whether the transaction of a lost session has ended. It is short, because a
 * check is cheap and leaves nothing behind.
 */
const FIRST_RECHECK_INTERVAL_MS = 250;
const LONGEST_RECHECK_INTERVAL_MS = 2_000;

/** Decides when a connection checks whether its server is still busy with the transaction of a lost session. */
export class AbandonedBackendChecks {
  #intervalMs = 0;
  #nextCheckAtMs = Number.NEGATIVE_INFINITY;
  #rejectionMessage = '';

  /**
   * True: the server was still busy with the transaction of the lost session at the last check, and it is too early for
   * the next one.
   */
  get isTooEarlyToRecheck(): boolean {
    return this.#intervalMs > 0 && performance.now() < this.#nextCheckAtMs;
  }

  /** The error message for callers until the next check. */
  get rejectionMessage(): string {
    return this.#rejectionMessage;
  }

  /**
   * Records that the server is still busy with the transaction: the next check comes after a delay that grows each
   * time.
   */
  recordStillBusy(): void {
    this.#intervalMs = Math.min(LONGEST_RECHECK_INTERVAL_MS, Math.max(FIRST_RECHECK_INTERVAL_MS, 2 * this.#intervalMs));
  }

  /**
   * Starts the delay until the next check. The caller has tried the other servers before, which may have taken a while,
   * so the delay starts only now.
   */
  startDelay(rejectionMessage: string): void {
    this.#rejectionMessage = rejectionMessage;
    this.#nextCheckAtMs = performance.now() + this.#intervalMs;
  }

  reset(): void {
    this.#intervalMs = 0;
  }
}
