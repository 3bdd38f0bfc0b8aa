import { readdirSync, readFileSync } from 'node:fs';

/** Ticks of a second in /proc/<pid>/stat; 100 on every Linux that Node runs on. */
const TICKS = 100;

/** CPU seconds (user and system) that a process and its living children have used, as Linux accounts for them. */
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

/** The fields after the name: state, ppid, … ; null when the process is gone. */
function statOf(pid: string): string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
}
