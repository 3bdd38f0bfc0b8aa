import type { Finding } from '../../doctor/finding.ts';
import type { LastRun } from '../../data-dir/server-state.ts';
import type { Environment } from '../../config/tree.ts';
import { formatDuration } from '../../../client/terminal/table.ts';

/** Why the server does not answer. */
export type OfflineState =
  /** The server waits for its database, or opens or migrates it. */
  | 'starting'
  | 'stopping'
  /** The process of the server exists but does not answer. */
  | 'unresponsive'
  /** Another program, such as `klatch migrate`, holds the lock of the data directory. */
  | 'locked'
  | 'stopped'
  | 'failed'
  /**
   * The last server ended without recording that it stopped or failed: by kill -9, a crash of the machine, or the lack
   * of memory.
   */
  | 'killed'
  | 'never started';

/** The status of a server that does not answer, as far as other processes can determine it. */
export interface OfflineStatus {
  readonly state: OfflineState;
  /** The id of the process that holds the lock of the data directory; null: there is none, or it is unknown. */
  readonly lockHolderPid: number | null;
  readonly lastRun: LastRun | null;
}

/** True if no process holds the lock of the data directory, so that a server can be started with it. */
export function isDataDirUnlocked({ state }: OfflineStatus): boolean {
  return ['stopped', 'failed', 'killed', 'never started'].includes(state);
}

/** Finds the problems that would prevent the start of a server now. Must be called only while no server runs. */
export async function findStartBlockers(configFile: string, env: Environment): Promise<readonly Finding[]> {
  // Imported only here: the checks load most of the server's code, which a command that reaches a running server does
  // not need.
  const { findStartupBlockers } = await import('../../doctor/startup-blockers.ts');
  return findStartupBlockers(configFile, env);
}

/**
 * Finds the problems that would prevent the start of a server now. Does not search, and returns none, while a process
 * holds the data directory's lock.
 */
export async function findBlockersIfUnlocked(
  offline: OfflineStatus,
  configFile: string,
  env: Environment,
): Promise<readonly Finding[]> {
  return isDataDirUnlocked(offline) ? findStartBlockers(configFile, env) : [];
}

/** The offline status as a sentence without a full stop. */
export function offlineSentence({ state, lockHolderPid: pid, lastRun }: OfflineStatus): string {
  const pidText = pid === null ? '' : ` (pid ${pid})`;
  const durationText = lastRun === null ? '' : ` for ${ageOf(new Date(lastRun.since))}`;
  if (state === 'starting') return `starting${pidText}${durationText}: it opens its database or brings it up to date`;
  if (state === 'stopping') return `stopping${pidText}${durationText}: it finishes what is in hand`;
  if (state === 'unresponsive') return `runs${pidText} and does not answer on its control socket`;
  if (state === 'locked') return `does not run: another process${pidText} uses its data directory`;
  if (lastRun === null) return 'does not run: none has been started with this data directory';
  return `does not run: ${describeRunEnd(lastRun, state)}`;
}

function describeRunEnd({ since, reason, exit_code, lastSeenAt }: LastRun, state: OfflineState): string {
  if (state === 'killed') return `it was killed, or its machine stopped; last seen alive ${ageOf(lastSeenAt)} ago`;
  const at = `${ageOf(new Date(since))} ago`;
  if (state === 'stopped') return `it was stopped ${at}${reason === null ? '' : ` by ${reason}`}`;
  return `it failed ${at}${exit_code === null ? '' : ` with exit status ${exit_code}`}${reason === null ? '' : `: ${reason}`}`;
}

function ageOf(date: Date): string {
  return formatDuration(Date.now() - date.getTime());
}
