/** The longest wait of setTimeout; a longer one fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Calls `onExpired` when a session expires by the wall clock. `isExpired` is for code that may run before a late timer.
 */
export class SessionExpiry {
  readonly #expiresAtMs: number;
  readonly #onExpired: () => void;
  #timer: NodeJS.Timeout | null = null;

  constructor(expiresAt: Date, onExpired: () => void) {
    this.#expiresAtMs = expiresAt.getTime();
    this.#onExpired = onExpired;
    this.#start();
  }

  /**
   * Whether the session has expired by now. The timer may not have run yet: somebody may have set the clock since its
   * start, and a busy process runs timers late.
   */
  get isExpired(): boolean {
    return this.#expiresAtMs <= Date.now();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #start(): void {
    const waitMs = Math.min(MAX_TIMER_MS, Math.max(0, this.#expiresAtMs - Date.now()));
    this.#timer = setTimeout(() => {
      if (this.isExpired) this.#onExpired();
      else this.#start();
    }, waitMs);
    this.#timer.unref();
  }
}
