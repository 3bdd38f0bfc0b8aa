import { readdir, readFile, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { EmbeddedError } from './embedded-error.ts';
import { SOCKET_PORT } from './socket-folder.ts';

const POLL_MS = 25;
/**
 * The time-outs of a fast and of an immediate stop: together less than the 35 s after which systemd kills the service.
 */
const FAST_STOP_TIMEOUT_MS = 20_000;
const IMMEDIATE_STOP_TIMEOUT_MS = 8_000;
/**
 * The kernel's names of PostgreSQL's processes. In the release archive the C library's loader runs the programs, and
 * the kernel names the process after the loader.
 */
const PROCESS_NAME_PATTERN = /^(postgres|ld-linux.*)$/;

/**
 * The contents of postmaster.pid. A file that is being written may lack its last lines: then `status` is "starting".
 */
export interface Postmaster {
  readonly pid: number;
  readonly port: number;
  readonly socketDir: string;
  readonly status: 'starting' | 'ready' | 'stopping';
}

/** The running postmaster of a cluster (a real path), else null. */
export async function findPostmaster(clusterDir: string): Promise<Postmaster | null> {
  const postmaster = await readPidFile(clusterDir);
  return postmaster !== null && (await isClusterProcess(postmaster.pid, clusterDir)) ? postmaster : null;
}

/**
 * True if the process is a PostgreSQL process of this cluster. The number in a pid file proves nothing: after a reboot
 * it may belong to any process. The working directory of each PostgreSQL process is its cluster's folder, and the
 * kernel reports it. Folders are compared by their inodes: in a mount namespace of its own (a service of systemd) a
 * folder may have another path.
 */
export async function isClusterProcess(pid: number, clusterDir: string): Promise<boolean> {
  try {
    if (!PROCESS_NAME_PATTERN.test((await readFile(`/proc/${pid}/comm`, 'utf8')).trim())) return false;
    const [folder, cluster] = await Promise.all([stat(`/proc/${pid}/cwd`), stat(clusterDir)]);
    return folder.dev === cluster.dev && folder.ino === cluster.ino;
  } catch {
    // The process has ended (a zombie has no folder either), or it belongs to another user, so Klatch did not start it.
    return false;
  }
}

/**
 * Waits until a process is no longer a PostgreSQL process of the cluster; false when it still is one after `timeoutMs`.
 */
export async function waitUntilGone(pid: number, clusterDir: string, timeoutMs: number): Promise<boolean> {
  const end = performance.now() + timeoutMs;
  while (await isClusterProcess(pid, clusterDir)) {
    if (performance.now() >= end) return false;
    await delay(POLL_MS);
  }
  return true;
}

/**
 * Waits until the children of a killed postmaster have ended. They hold its shared memory until their statement ends,
 * and a new postmaster would refuse to start beside them. Resolves with the pids that are left after `timeoutMs`, and
 * early with none when a running postmaster appears.
 */
export async function waitForOrphans(clusterDir: string, timeoutMs: number): Promise<number[]> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const orphans = await findClusterPids(clusterDir);
    if (orphans.length === 0 || performance.now() >= end) return orphans;
    // The processes found are not orphans, but those of a server whose start was killed before the server had written
    // its pid file.
    if ((await findPostmaster(clusterDir)) !== null) return [];
    await delay(POLL_MS);
  }
}

/**
 * Removes lock files whose pid now belongs to another program: PostgreSQL would take that program for a running server.
 * PostgreSQL itself handles files of dead pids. A postmaster enters its cluster's folder before it writes a lock, so
 * `isClusterProcess` recognizes it, and its lock stays.
 */
export async function removeReusedPidLocks(clusterDir: string, socketDir: string): Promise<void> {
  for (const path of [join(clusterDir, 'postmaster.pid'), join(socketDir, `.s.PGSQL.${SOCKET_PORT}.lock`)]) {
    const text = await readFile(path, 'utf8').catch(nullIfNotFound);
    if (text === null) continue;
    const pid = Number.parseInt(text, 10);
    if (pid > 0 && isAlive(pid) && !(await isClusterProcess(pid, clusterDir))) await unlink(path);
  }
}

/**
 * Stops a postmaster in PostgreSQL's mode "fast" (sessions end, it writes a checkpoint), and after 20 s in the mode
 * "immediate" (the next start recovers). Does nothing when it has ended already. Rejects with EmbeddedError when it
 * outlives both signals.
 */
export async function stopPostmaster(
  pid: number,
  clusterDir: string,
  log: (event: string, fields: Record<string, unknown>) => void,
) {
  // The code checks the process before each signal: the postmaster may have ended long ago, and its pid may belong to
  // another process now.
  if (await waitUntilGone(pid, clusterDir, 0)) return;
  signal(pid, 'SIGINT');
  if (await waitUntilGone(pid, clusterDir, FAST_STOP_TIMEOUT_MS)) return;
  log('the database server does not stop, ending it at once', { pid, afterMs: FAST_STOP_TIMEOUT_MS });
  signal(pid, 'SIGQUIT');
  if (await waitUntilGone(pid, clusterDir, IMMEDIATE_STOP_TIMEOUT_MS)) return;
  throw new EmbeddedError(
    'stop-timeout',
    `The database server of ${clusterDir} (pid ${pid}) did not stop within ${(FAST_STOP_TIMEOUT_MS + IMMEDIATE_STOP_TIMEOUT_MS) / 1000} s. ` +
      'It goes on running; the next start of Klatch takes it over.',
  );
}

function signal(pid: number, name: 'SIGINT' | 'SIGQUIT'): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // The process has just ended, which was the purpose of the signal.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/**
 * Reads postmaster.pid. Its lines are: pid, folder, start time, port, socket folder, address, shared memory, status.
 */
async function readPidFile(clusterDir: string): Promise<Postmaster | null> {
  const text = await readFile(join(clusterDir, 'postmaster.pid'), 'utf8').catch(nullIfNotFound);
  if (text === null) return null;
  const lines = text.split('\n').map((line) => line.trim());
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 0) return null;
  const status = lines[7] === 'ready' || lines[7] === 'stopping' ? lines[7] : 'starting';
  return { pid, port: Number(lines[3]) || SOCKET_PORT, socketDir: lines[4] ?? '', status };
}

async function findClusterPids(clusterDir: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const serving = await Promise.all(pids.map(async (pid) => ((await isClusterProcess(pid, clusterDir)) ? pid : null)));
  return serving.filter((pid) => pid !== null);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function nullIfNotFound(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
