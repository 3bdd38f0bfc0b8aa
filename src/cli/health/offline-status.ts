import type { Finding } from '../../doctor/finding.ts';
import type { LastRun } from '../../data-dir/server-state.ts';
import type { Environment } from '../../config/tree.ts';
import { formatDuration } from '../../../client/terminal/table.ts';

/** Why the server does not answer. */
export type OfflineState =
  /** The server opens its database, upgrades it, or waits for either. */
  | 'starting'
  | 'stopping'
  /** The server runs but does not answer. */
  | 'unresponsive'
  /** Another process holds the data directory, such as `klatch migrate`. */
  | 'locked'
  | 'stopped'
  | 'failed'
  /** The run has no recorded end: kill -9, a crash of the machine, no memory left. */
  | 'killed'
  | 'never started';

/** The known facts about a server that does not answer. */
export interface OfflineStatus {
  readonly state: OfflineState;
  /** The process that holds the data directory. */
  readonly holderPid: number | null;
  readonly lastRun: LastRun | null;
}

/** Whether no process holds the data directory, so that a server can be started on it. */
export function isDataDirUnlocked({ state }: OfflineStatus): boolean {
  return ['stopped', 'failed', 'killed', 'never started'].includes(state);
}

/** Finds what would prevent a start now; to be called only while no server runs. */
export async function findStartBlockers(file: string, env: Environment): Promise<readonly Finding[]> {
  // Imported here: the checks load most of the server, which a command that reaches a running one does not need.
  const { findStartupBlockers } = await import('../../doctor/startup-blockers.ts');
  return findStartupBlockers(file, env);
}

/** What would prevent a start now; empty where a process already holds the directory. */
export async function findBlockersIfUnlocked(
  offline: OfflineStatus,
  file: string,
  env: Environment,
): Promise<readonly Finding[]> {
  return isDataDirUnlocked(offline) ? findStartBlockers(file, env) : [];
}

/** The reason of the absence as one sentence without a full stop. */
export function offlineSentence({ state, holderPid: pid, lastRun }: OfflineStatus): string {
  const process = pid === null ? '' : ` (pid ${pid})`;
  const since = lastRun === null ? '' : ` for ${ageOf(new Date(lastRun.since))}`;
  if (state === 'starting') return `starting${process}${since}: it opens its database or brings it up to date`;
  if (state === 'stopping') return `stopping${process}${since}: it finishes what is in hand`;
  if (state === 'unresponsive') return `runs${process} and does not answer on its control socket`;
  if (state === 'locked') return `does not run: another process${process} uses its data directory`;
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
