import { BoundedCache } from '../model/bounded-cache.ts';

/** Failures in a row after which a host rests. */
const FAILURES = 5;
/** How long it rests: doubled with each failure after that. */
const FIRST_REST_MS = 10_000;
const MAX_REST_MS = 10 * 60_000;
const MAX_HOSTS = 1_000;

interface Course {
  readonly failures: number;
  /** When the last failure was noted that counted. */
  readonly failedMs: number;
  readonly untilMs: number;
}

/** Hosts that do not answer rest, so that nobody's dead one takes the turns of the others. */
export class HostRests {
  readonly #courses = new BoundedCache<string, Course>(MAX_HOSTS);
  readonly #now: () => number;

  /** `now`: milliseconds that only go forward, for tests. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Milliseconds that a host still rests; 0: it may be asked. */
  left(origin: string): number {
    return Math.max(0, Math.ceil((this.#courses.get(origin)?.untilMs ?? 0) - this.#now()));
  }

  /** Notes whether a host answered, whatever its answer was, to what began at `startedMs`. */
  note(origin: string, answered: boolean, startedMs: number): void {
    if (answered) {
      this.#courses.delete(origin);
      return;
    }
    const before = this.#courses.get(origin);
    // Many are under way when a host goes: those that began before its rest say nothing new.
    if (before !== undefined && before.failures >= FAILURES && startedMs <= before.failedMs) return;
    const failures = (before?.failures ?? 0) + 1;
    const failedMs = this.#now();
    const restMs = Math.min(MAX_REST_MS, FIRST_REST_MS * 2 ** (failures - FAILURES));
    this.#courses.set(origin, { failures, failedMs, untilMs: failures < FAILURES ? 0 : failedMs + restMs });
  }
}
