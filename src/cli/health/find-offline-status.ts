import { findLockHolder } from '../../data-dir/lock.ts';
import { readLastRun, type LastRun } from '../../data-dir/server-state.ts';
import type { OfflineStatus, OfflineState } from './offline-status.ts';

/**
 * Determines why the server does not answer: from the process that holds the data directory's lock, and from the record
 * of the last run.
 */
export async function findOfflineStatus(dataDir: string): Promise<OfflineStatus> {
  const holder = await findLockHolder(dataDir).catch(() => null);
  const lastRun = readLastRun(dataDir);
  if (holder !== null) return { state: stateWhileLockHeld(holder.pid, lastRun), lockHolderPid: holder.pid, lastRun };
  return { state: stateWithoutHolder(lastRun), lockHolderPid: null, lastRun };
}

function stateWhileLockHeld(holderPid: number | null, lastRun: LastRun | null): OfflineState {
  if (holderPid !== null && lastRun?.pid !== holderPid) return 'locked';
  if (lastRun?.state === 'starting') return 'starting';
  // If the record says `stopped` or `failed`, the server is still stopping: it writes the record shortly before it
  // releases the directory's lock.
  return lastRun === null || lastRun.state === 'ready' ? 'unresponsive' : 'stopping';
}

function stateWithoutHolder(lastRun: LastRun | null): OfflineState {
  if (lastRun === null) return 'never started';
  return lastRun.state === 'stopped' || lastRun.state === 'failed' ? lastRun.state : 'killed';
}
