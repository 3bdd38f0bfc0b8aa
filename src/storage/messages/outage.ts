import { CommitUnknownError, DatabaseUnavailableError } from '../db/database-error.ts';
import type { Pool } from '../db/pool.ts';
import { probeWrite } from '../db/writability.ts';

/** From one look at a database that is away to the next. */
const PROBE_INTERVAL_MS = 250;
/** After a probe that was lost, as it may have left a process of the server waiting: twice as long each time. */
const INTERVALS_AFTER_LOST_PROBE_MS = { first: 1_000, longest: 30_000 };

interface OutageOptions {
  readonly cause: unknown;
  /** From the beginning, how long posts may begin to wait for the end. */
  readonly holdMs: number;
}

/** A time in which the database is away, from its first failure until it has taken a write. */
export class Outage {
  /** Resolves at the end, or when it is stopped. */
  readonly end: Promise<void>;
  readonly #pool: Pool;
  readonly #heldUntilMs: number;
  #error: Error;
  #stopped = false;

  constructor(pool: Pool, { cause, holdMs }: OutageOptions) {
    this.#pool = pool;
    this.#heldUntilMs = performance.now() + holdMs;
    this.#error = unavailable(cause);
    this.end = this.#probe();
  }

  /** What posts are refused with: its cause is what was found last. */
  get error(): Error {
    return this.#error;
  }

  /** True: it has lasted for longer than any post may wait. */
  get refusesPosts(): boolean {
    return performance.now() >= this.#heldUntilMs;
  }

  stop(): void {
    this.#stopped = true;
  }

  /** A read would do where nothing can be written: on a standby, or while every commit waits for one. */
  async #probe(): Promise<void> {
    let lostProbes = 0;
    while (!this.#stopped) {
      try {
        await this.#pool.run(probeWrite);
        return;
      } catch (error) {
        this.#error = unavailable(error);
        const isLost = error instanceof CommitUnknownError;
        await pause(isLost ? backoffMs(lostProbes++) : PROBE_INTERVAL_MS);
      }
    }
  }
}

function backoffMs(lostProbes: number): number {
  return Math.min(INTERVALS_AFTER_LOST_PROBE_MS.longest, INTERVALS_AFTER_LOST_PROBE_MS.first * 2 ** lostProbes);
}

function unavailable(cause: unknown): Error {
  return new DatabaseUnavailableError('the database is away', { cause });
}

/** Nobody waits for it at the end of the process. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref());
}
