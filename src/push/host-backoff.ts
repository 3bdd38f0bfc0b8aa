import { BoundedCache } from '../model/bounded-cache.ts';

/** After this number of requests in a row without an answer, a host gets a pause. */
const UNANSWERED_THRESHOLD = 5;
/** The first and the greatest length of the pause, which doubles with each further failure. */
const MIN_BACKOFF_MS = 10_000;
const MAX_BACKOFF_MS = 10 * 60_000;
const MAX_REMEMBERED_HOSTS = 1_000;

interface HostFailureState {
  readonly failures: number;
  /** The time of the last failure that was counted in `failures`. */
  readonly lastFailureAtMs: number;
  readonly backoffUntilMs: number;
}

/**
 * Gives unresponsive hosts a pause, in which no push is sent to them. So one person's dead host does not delay the
 * pushes of others.
 */
export class UnresponsiveHostBackoff {
  readonly #hosts = new BoundedCache<string, HostFailureState>(MAX_REMEMBERED_HOSTS);
  readonly #now: () => number;

  /** `now`: a monotonic clock in milliseconds; tests set their own. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Milliseconds that a host's pause still lasts; 0: a push may be sent. */
  remainingBackoffMs(origin: string): number {
    return Math.max(0, Math.ceil((this.#hosts.get(origin)?.backoffUntilMs ?? 0) - this.#now()));
  }

  /** Records whether a host answered, with any status, a request that began at `startedAtMs`. */
  recordRequest(origin: string, answered: boolean, startedAtMs: number): void {
    if (answered) {
      this.#hosts.delete(origin);
      return;
    }
    const previous = this.#hosts.get(origin);
    // Many requests may be in flight when a host's pause begins. Their failures do not count, since they began before
    // the pause.
    if (previous !== undefined && previous.failures >= UNANSWERED_THRESHOLD && startedAtMs <= previous.lastFailureAtMs)
      return;
    const failures = (previous?.failures ?? 0) + 1;
    const lastFailureAtMs = this.#now();
    const backoffMs = Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** (failures - UNANSWERED_THRESHOLD));
    this.#hosts.set(origin, {
      failures,
      lastFailureAtMs,
      backoffUntilMs: failures < UNANSWERED_THRESHOLD ? 0 : lastFailureAtMs + backoffMs,
    });
  }
}
