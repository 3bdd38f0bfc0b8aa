import { CommitUnknownError, DatabaseUnavailableError } from '../db/database-error.ts';
import type { Pool } from '../db/pool.ts';
import { probeWrite } from '../db/writability.ts';

/** The interval between two probes of an unavailable database. */
const PROBE_INTERVAL_MS = 250;
/**
 * The interval after a probe whose connection was lost, which may have left a server process waiting. It doubles with
 * each such probe, from `first` up to `longest`.
 */
const INTERVALS_AFTER_LOST_PROBE_MS = { first: 1_000, longest: 30_000 };

interface OutageOptions {
  readonly cause: unknown;
  /** How long after the beginning of the outage new posts are still accepted, to wait for its end. */
  readonly holdMs: number;
}

/** A time in which the database is unavailable, from its first failure until it has taken a write. */
export class Outage {
  /** Resolves at the end of the outage, or soon after `stop`. */
  readonly end: Promise<void>;
  readonly #pool: Pool;
  readonly #heldUntilMs: number;
  #error: Error;
  #stopped = false;

  constructor(pool: Pool, { cause, holdMs }: OutageOptions) {
    this.#pool = pool;
    this.#heldUntilMs = performance.now() + holdMs;
    this.#error = unavailableError(cause);
    this.end = this.#probeUntilWritable();
  }

  /** The error for posts that are refused during the outage. Its cause is the last failure of the database. */
  get error(): Error {
    return this.#error;
  }

  /** True: the outage has lasted for `holdMs` or longer, so that new posts are refused. */
  get refusesPosts(): boolean {
    return performance.now() >= this.#heldUntilMs;
  }

  stop(): void {
    this.#stopped = true;
  }

  /**
   * Repeats a write that changes nothing until it succeeds. A read would succeed where no write can: on a standby, or
   * while every commit waits for a standby.
   */
  async #probeUntilWritable(): Promise<void> {
    let lostProbes = 0;
    while (!this.#stopped) {
      try {
        await this.#pool.run(probeWrite);
        return;
      } catch (error) {
        this.#error = unavailableError(error);
        const isLost = error instanceof CommitUnknownError;
        await pause(isLost ? backoffMs(lostProbes++) : PROBE_INTERVAL_MS);
      }
    }
  }
}

function backoffMs(lostProbes: number): number {
  return Math.min(INTERVALS_AFTER_LOST_PROBE_MS.longest, INTERVALS_AFTER_LOST_PROBE_MS.first * 2 ** lostProbes);
}

function unavailableError(cause: unknown): Error {
  return new DatabaseUnavailableError('the database is away', { cause });
}

/** Waits with a timer that does not keep the process alive. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref());
}
