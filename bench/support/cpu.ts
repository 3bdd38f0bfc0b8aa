import { readdirSync, readFileSync } from 'node:fs';

/** Ticks per second in /proc/<pid>/stat; 100 on every Linux that Node supports. */
const TICKS = 100;

/** CPU seconds (user and system) that a process and its living children have used, as Linux counts them. */
export function cpuSeconds(pid: number): number {
  let ticks = 0;
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const fields = statOf(name);
    if (fields !== null && (name === String(pid) || fields[1] === String(pid)))
      ticks += Number(fields[11]) + Number(fields[12]);
  }
  return ticks / TICKS;
}

/** Resident memory of a process in MiB. */
export function residentMiB(pid: number): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? 0) / 1024;
}

/** The fields of /proc/<pid>/stat after the name: state, ppid, … ; null if the process has ended. */
function statOf(pid: string): string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
}

/** The names of the server processes whose CPU time counts. */
const SERVER_NAMES = new Set(['klatch', 'postgres']);

/**
 * CPU seconds (user and system) of Klatch and PostgreSQL among the descendants of a process. The figures of a parent
 * include children that have ended. So the time of a database connection counts even after its process has ended.
 */
export function serverCpuSeconds(root: number): number {
  const processes = new Map<string, { name: string; parent: string; ticks: number }>();
  for (const pid of readdirSync('/proc')) {
    const fields = /^\d+$/.test(pid) ? statOf(pid) : null;
    if (fields === null) continue;
    const ticks = [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0);
    processes.set(pid, { name: nameOf(pid), parent: fields[1]!, ticks });
  }
  const isBelow = (pid: string | undefined): boolean =>
    pid !== undefined && (pid === String(root) || isBelow(processes.get(pid)?.parent));
  let ticks = 0;
  for (const [pid, each] of processes) if (SERVER_NAMES.has(each.name) && isBelow(pid)) ticks += each.ticks;
  return ticks / TICKS;
}

/** The name that a process gives itself; empty if the process has ended. */
function nameOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return '';
  }
}
