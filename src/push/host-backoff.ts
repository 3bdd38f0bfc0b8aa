import { BoundedCache } from '../model/bounded-cache.ts';

/** Failures in a row after which a host rests. */
const UNANSWERED_THRESHOLD = 5;
/** How long it rests: doubled with each failure after that. */
const MIN_BACKOFF_MS = 10_000;
const MAX_BACKOFF_MS = 10 * 60_000;
const MAX_HOSTS = 1_000;

interface HostFailureState {
  readonly failures: number;
  /** When the last failure was noted that counted. */
  readonly lastFailureAtMs: number;
  readonly backoffUntilMs: number;
}

/** Hosts that do not answer rest, so that nobody's dead one takes the turns of the others. */
export class UnresponsiveHostBackoff {
  readonly #hosts = new BoundedCache<string, HostFailureState>(MAX_HOSTS);
  readonly #now: () => number;

  /** `now`: milliseconds that only go forward, for tests. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Milliseconds that a host still rests; 0: it may be asked. */
  remainingBackoffMs(origin: string): number {
    return Math.max(0, Math.ceil((this.#hosts.get(origin)?.backoffUntilMs ?? 0) - this.#now()));
  }

  /** Notes whether a host answered, whatever its answer was, to what began at `startedMs`. */
  record(origin: string, answered: boolean, startedMs: number): void {
    if (answered) {
      this.#hosts.delete(origin);
      return;
    }
    const previous = this.#hosts.get(origin);
    // Many are under way when a host goes: those that began before its rest say nothing new.
    if (previous !== undefined && previous.failures >= UNANSWERED_THRESHOLD && startedMs <= previous.lastFailureAtMs)
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
