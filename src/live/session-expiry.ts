/** The longest wait of setTimeout; a longer one fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** When a session expires, by the wall clock: a timer, and a comparison for callers that may be ahead of the timer. */
export class SessionExpiry {
  readonly #expiresAtMs: number;
  readonly #onExpired: () => void;
  #timer: NodeJS.Timeout | null = null;

  constructor(expiresAt: Date, onExpired: () => void) {
    this.#expiresAtMs = expiresAt.getTime();
    this.#onExpired = onExpired;
    this.#start();
  }

  /** The clock may have been set since the timer was started, and a busy process runs timers late. */
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
