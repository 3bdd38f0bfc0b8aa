import type { Finding } from '../../doctor/finding.ts';
import type { LastRun } from '../../data-dir/server-state.ts';
import type { Environment } from '../../config/tree.ts';
import { formatDuration } from '../../../client/terminal/table.ts';

/** Why the server does not answer. */
export type OfflineState =
  /** It opens its database, brings it up to date, or waits for either. */
  | 'starting'
  | 'stopping'
  /** It runs and does not answer. */
  | 'unresponsive'
  /** Another process has the data directory, such as `klatch migrate`. */
  | 'locked'
  | 'stopped'
  | 'failed'
  /** Its end was not noted: kill -9, a crash of the machine, no memory left. */
  | 'killed'
  | 'never started';

/** A server that does not answer, as far as it can be known without it. */
export interface OfflineStatus {
  readonly state: OfflineState;
  /** The process that has the data directory. */
  readonly holderPid: number | null;
  readonly lastRun: LastRun | null;
}

/** Whether nothing has the data directory, so that a server can be started on it. */
export function isDataDirUnlocked({ state }: OfflineStatus): boolean {
  return ['stopped', 'failed', 'killed', 'never started'].includes(state);
}

/** Finds what would keep a server that is started now from its work; only to be called while none runs. */
export async function findStartBlockers(file: string, env: Environment): Promise<readonly Finding[]> {
  // Imported here: the checks load most of the server, which a command that reaches a running one does not need.
  const { findStartupBlockers } = await import('../../doctor/startup-blockers.ts');
  return findStartupBlockers(file, env);
}

/** What would keep it from starting now; nothing is looked for where a process has the directory already. */
export async function findBlockersIfUnlocked(
  offline: OfflineStatus,
  file: string,
  env: Environment,
): Promise<readonly Finding[]> {
  return isDataDirUnlocked(offline) ? findStartBlockers(file, env) : [];
}

/** The absence in one sentence without a full stop. */
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
