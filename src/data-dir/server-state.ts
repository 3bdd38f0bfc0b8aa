import { statSync, utimesSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { replaceFile } from '../config/durable-file.ts';
import type { Log } from '../log.ts';

/**
 * The interval at which the process sets the modification time of its state file, which tells when it was last alive.
 */
const LAST_SEEN_INTERVAL_MS = 10_000;
const STATE_FILE = 'server-state.json';
/** The maximum length of a stored reason, which can contain the last lines of the database's log. */
const MAX_REASON_LENGTH = 4_000;

const stateFileSchema = z.object({
  state: z.enum(['starting', 'ready', 'stopping', 'stopped', 'failed']),
  version: z.string(),
  pid: z.int(),
  /** The id of this start (`startIdOf`); null: none. Records of earlier versions lack it. */
  start_id: z.string().nullable().default(null),
  started_at: z.string(),
  /** The time at which the process entered this state. */
  since: z.string(),
  /** The reason why the process stops, stopped or failed; null: no reason was given. */
  reason: z.string().nullable(),
  exit_code: z.int().nullable(),
});

type StoredState = z.infer<typeof stateFileSchema>;

/** The record of the last run on a data directory. */
export interface LastRun extends StoredState {
  readonly lastSeenAt: Date;
}

/** The reason for which a process exits, for the record of its run. Contains no secrets. */
export interface ExitReason {
  readonly reason: string | null;
  /** Null: the exit code is not known. */
  readonly exitCode: number | null;
}

/**
 * Records the state of a process in its data directory, so that `klatch status` can say why no server runs. The record
 * says that the server was stopped, or that it failed, with the reason. Any other recorded state of a process that is
 * gone means that the process was killed. The process holds the directory's lock from `markStarting` to
 * `markStoppedOrFailed`. If the record cannot be written, for instance on a full disk, the server still runs.
 */
export class LastRunRecorder {
  readonly #path: string;
  readonly #log: Log;
  #storedState: StoredState;
  #exitReason: ExitReason | null = null;
  #lastSeenTimer: NodeJS.Timeout | null = null;

  constructor(dataDir: string, options: { version: string; startId: string | null; log: Log }) {
    this.#path = join(dataDir, STATE_FILE);
    this.#log = options.log;
    const now = new Date().toISOString();
    const { version, startId } = options;
    const run = { version, pid: process.pid, start_id: startId, started_at: now };
    this.#storedState = { state: 'starting', ...run, since: now, ...NO_REASON };
  }

  markStarting(): void {
    this.#lastSeenTimer = setInterval(() => this.#touchStateFile(), LAST_SEEN_INTERVAL_MS);
    this.#lastSeenTimer.unref();
    this.#write('starting', NO_REASON);
  }

  markReady(): void {
    this.#write('ready', NO_REASON);
  }

  markStopping(reason: string | null): void {
    this.#exitReason ??= { reason, exitCode: 0 };
    this.#write('stopping', { reason: this.#exitReason.reason, exit_code: null });
  }

  /** Sets the reason for which the process is going to end. `markStopping` does not change it later. */
  setExitReason(exitReason: ExitReason): void {
    this.#exitReason = exitReason;
  }

  /**
   * Writes the final state. No write follows, and none comes before `markStarting`: another process may use the
   * directory then.
   */
  markStoppedOrFailed(): void {
    const { reason, exitCode } = this.#exitReason ?? { reason: null, exitCode: 0 };
    this.#write(exitCode === 0 ? 'stopped' : 'failed', { reason, exit_code: exitCode });
    if (this.#lastSeenTimer !== null) clearInterval(this.#lastSeenTimer);
    this.#lastSeenTimer = null;
  }

  #write(state: StoredState['state'], { reason, exit_code }: Pick<StoredState, 'reason' | 'exit_code'>): void {
    if (this.#lastSeenTimer === null) return;
    const cut = reason === null ? null : reason.slice(0, MAX_REASON_LENGTH);
    this.#storedState = { ...this.#storedState, state, since: new Date().toISOString(), reason: cut, exit_code };
    try {
      replaceFile(this.#path, `${JSON.stringify(this.#storedState)}\n`, { mode: 0o640 });
    } catch (error) {
      this.#log.warn('the record of this run cannot be written', { error });
    }
  }

  #touchStateFile(): void {
    try {
      utimesSync(this.#path, new Date(), new Date());
    } catch (error) {
      this.#log.debug('the record of this run cannot be kept up to date', { error });
    }
  }
}

const NO_REASON = { reason: null, exit_code: null } as const;

/**
 * The id of a start, which the service manager gives to the server and to the program that waits for it; null: started
 * by hand.
 */
export function startIdOf(env: Readonly<Record<string, string | undefined>>): string | null {
  return env['KLATCH_START_ID'] ?? env['INVOCATION_ID'] ?? null;
}

/** The record of the last process on a data directory; null: there is none that can be read. */
export function readLastRun(dataDir: string): LastRun | null {
  const path = join(dataDir, STATE_FILE);
  try {
    const storedState = stateFileSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
    // The file's modification time comes from the kernel, and can be a tick earlier than `since`, which comes from the
    // clock.
    return { ...storedState, lastSeenAt: new Date(Math.max(statSync(path).mtimeMs, Date.parse(storedState.since))) };
  } catch {
    // The record is missing, unreadable for this user, or of another version.
    return null;
  }
}
