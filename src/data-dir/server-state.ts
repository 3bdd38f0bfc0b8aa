import { statSync, utimesSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { replaceFile } from '../config/durable-file.ts';
import type { Log } from '../log.ts';

/** The file's time says when the process was last seen alive: it is set anew this often. */
const LAST_SEEN_INTERVAL_MS = 10_000;
const STATE_FILE = 'server-state.json';
/** A reason can hold the last lines of the database's log. */
const MAX_REASON_LENGTH = 4_000;

const stateFileSchema = z.object({
  state: z.enum(['starting', 'ready', 'stopping', 'stopped', 'failed']),
  version: z.string(),
  pid: z.int(),
  /** What whoever started it calls this start; null: nothing. Records of earlier versions lack it. */
  start_id: z.string().nullable().default(null),
  started_at: z.string(),
  /** When it came into this state. */
  since: z.string(),
  /** Why it stops, stopped or failed; null: nobody said. */
  reason: z.string().nullable(),
  exit_code: z.int().nullable(),
});

type StoredState = z.infer<typeof stateFileSchema>;

/** How the last run on a data directory went. */
export interface LastRun extends StoredState {
  readonly lastSeenAt: Date;
}

/** Why a process ends, for whoever asks afterwards. Without secrets. */
export interface ExitReason {
  readonly reason: string | null;
  /** Null: not known. */
  readonly exitCode: number | null;
}

/**
 * What a process of this data directory leaves behind, so that `klatch status` can say why no server runs: stopped and
 * by what, failed and why, or none of it, which means that it was killed. Its holder has the directory's lock from
 * `markStarting` to `markStoppedOrFailed`. A record that cannot be written, since the disk is full, keeps no server from its work.
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

  /** The process is going to end for this reason, whatever `markStopping` says later. */
  setExitReason(exitReason: ExitReason): void {
    this.#exitReason = exitReason;
  }

  /** Nothing is written after it, or before `markStarting`: the directory may be another process's. */
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

/** The name of a start, which the service gives to the server and to who waits for it; null: started by hand. */
export function startIdOf(env: Readonly<Record<string, string | undefined>>): string | null {
  return env['KLATCH_START_ID'] ?? env['INVOCATION_ID'] ?? null;
}

/** What the last process on a data directory left behind; null: nothing, or nothing that can be read. */
export function readLastRun(dataDir: string): LastRun | null {
  const path = join(dataDir, STATE_FILE);
  try {
    const storedState = stateFileSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
    // The file's time is a tick of the kernel behind the clock.
    return { ...storedState, lastSeenAt: new Date(Math.max(statSync(path).mtimeMs, Date.parse(storedState.since))) };
  } catch {
    // Not there, closed to this user, or of another version: nothing is known either way.
    return null;
  }
}
