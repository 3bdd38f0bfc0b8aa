import { findHolder } from '../storage/data-dir-lock.ts';
import { readLastRun, type LastRun } from '../storage/run-record.ts';
import type { Absence, AbsenceState } from './absence.ts';

/** Looks at who holds the data directory and what its last server left behind. */
export async function explainAbsence(dataDir: string): Promise<Absence> {
  const holder = await findHolder(dataDir).catch(() => null);
  const lastRun = readLastRun(dataDir);
  if (holder !== null) return { state: stateOfHolder(holder.pid, lastRun), pid: holder.pid, lastRun };
  return { state: stateOfNobody(lastRun), pid: null, lastRun };
}

function stateOfHolder(pid: number | null, lastRun: LastRun | null): AbsenceState {
  if (pid !== null && lastRun?.pid !== pid) return 'occupied';
  if (lastRun?.state === 'starting') return 'starting';
  // `stopped` is written a moment before the directory is free.
  return lastRun === null || lastRun.state === 'ready' ? 'silent' : 'stopping';
}

function stateOfNobody(lastRun: LastRun | null): AbsenceState {
  if (lastRun === null) return 'never started';
  return lastRun.state === 'stopped' || lastRun.state === 'failed' ? lastRun.state : 'killed';
}
