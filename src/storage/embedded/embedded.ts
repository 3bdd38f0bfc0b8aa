import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { ensureDataDir } from '../../data-dir/lock.ts';
import { chooseOsUser, commandAs, type OsUser } from './os-user.ts';
import {
  createCluster,
  readClusterMajor,
  refuseSymlink,
  refuseUnfinishedUpgrade,
  removeUnfinishedClustersListingFailures,
} from './cluster.ts';
import { EmbeddedError } from './embedded-error.ts';
import { findPostmaster, removeReusedPidLocks, stopPostmaster, waitForOrphans, waitUntilGone } from './postmaster.ts';
import { findPrograms, type Programs } from './programs.ts';
import { APP_DATABASE, APP_ROLE, waitUntilReady, type ReadinessResult } from './readiness.ts';
import { programEnvironment } from './run-program.ts';
import { openServerLog, readLogTail, type ServerLog } from './server-log.ts';
import { serverSettingArguments } from './settings.ts';
import { makeSocketFolder, removeOutsideSocketFolder, SOCKET_PORT } from './socket-folder.ts';

export { EmbeddedError } from './embedded-error.ts';

/** The time-out from finding or starting the server until it answers, without its recovery time. */
const START_TIMEOUT_MS = 60_000;
/**
 * How long a server may recover after a crash. On a slow disk it takes many minutes. A start that gives up makes the
 * recovery begin again, since a service manager ends the processes that a failed start leaves.
 */
const RECOVERY_TIMEOUT_MS = 6 * 60 * 60_000;
/** If a server ends or appears during a check, the start checks again; more often than this counts as a failure. */
const MAX_ATTEMPTS = 5;

export interface EmbeddedOptions {
  /** Klatch's data directory, created when missing; the cluster is `postgresql` inside. The caller holds its lock. */
  readonly dataDir: string;
  /** services.postgresql.bin-dir; null: search. */
  readonly binDir: string | null;
  /** Called with progress: an event in words ("creating the database files") and fields. */
  readonly log: (event: string, fields?: Record<string, unknown>) => void;
  /**
   * Further settings for PostgreSQL, which override Klatch's. With `fsync: 'off'` creation does not wait for the disk.
   */
  readonly settings?: Readonly<Record<string, string>>;
  /**
   * True once the caller has given up: a start that waits for a recovery then rejects, and leaves the server
   * recovering.
   */
  readonly isCancelled?: () => boolean;
}

/** A running private server. Clients reach it through `socketDir` (a folder) and `port`, without a password. */
export interface EmbeddedServer {
  readonly socketDir: string;
  readonly port: number;
  /** Role `klatch`, not a superuser. The superuser `postgres` connects in the same way. */
  readonly user: string;
  /** Database `klatch`, owned by role `klatch`; UTF8, order by code point. */
  readonly database: string;
  /** For instance "18.4". */
  readonly version: string;
  /** True if the server was running already, because the previous Klatch was killed. */
  readonly adopted: boolean;
  /**
   * Stops the server: fast (sessions end, nothing is lost), after 20 s immediately. Idempotent; rejects with
   * EmbeddedError.
   */
  stop(): Promise<void>;
}

/** Values that stay the same over the attempts of one start. Paths are real paths. */
interface StartContext {
  readonly dataDir: string;
  readonly clusterDir: string;
  readonly options: EmbeddedOptions;
  readonly startBeganAtMs: number;
  readonly deadlineMs: number;
}

/**
 * Starts the private PostgreSQL server of a data directory, or takes over the one that is running there. The first
 * start creates its files. The server runs in a session of its own, so Ctrl-C in the terminal stops Klatch, and Klatch
 * stops the server. Rejects with EmbeddedError.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  try {
    const dataDir = await ensureDataDir(options.dataDir);
    const clusterDir = join(dataDir, 'postgresql');
    await refuseSymlink(clusterDir);
    for (const folder of await removeUnfinishedClustersListingFailures(dataDir)) {
      options.log('cannot remove an unfinished cluster', { folder });
    }
    const startBeganAtMs = performance.now();
    return await startOrAdopt({
      dataDir,
      clusterDir,
      options,
      startBeganAtMs,
      deadlineMs: startBeganAtMs + START_TIMEOUT_MS,
    });
  } catch (error) {
    throw explain(error, options.dataDir);
  }
}

async function startOrAdopt(first: StartContext): Promise<EmbeddedServer> {
  let start = first;
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const adopted = await adoptRunningServer(start);
    if (adopted !== null) return adopted;
    const orphans = await waitForOrphans(start.clusterDir, start.deadlineMs - performance.now());
    if (orphans.length > 0) {
      const message = `Processes of an earlier database server are still at work in ${start.clusterDir} (pid ${orphans.join(', ')}). End them with "kill -QUIT", then start again.`;
      throw new EmbeddedError('start-timeout', message);
    }
    if ((await findPostmaster(start.clusterDir)) !== null) continue;
    const prepared = await prepareCluster(start);
    // Creating the files has its own time-out.
    start = { ...start, deadlineMs: performance.now() + START_TIMEOUT_MS };
    const launched = await launchAndAwaitReady(start, prepared);
    if (launched !== null) return launched;
  }
  throw new EmbeddedError(
    'start-failed',
    `The database server in ${first.clusterDir} ended ${MAX_ATTEMPTS} times while it was being started. ` +
      `Its log is ${join(first.dataDir, 'postgresql.log')}.`,
  );
}

/** Takes over a running postmaster. Null: there is none (any more). */
async function adoptRunningServer(start: StartContext): Promise<EmbeddedServer | null> {
  const { clusterDir, deadlineMs, options } = start;
  const found = await findPostmaster(clusterDir);
  if (found === null) return null;
  const { pid, status } = found;
  if (status === 'stopping') {
    options.log('waiting for the previous database server to stop', { pid });
    if (await waitUntilGone(pid, clusterDir, deadlineMs - performance.now())) return null;
    throw startTimeoutError(start, pid, 'stopping');
  }
  options.log('taking over the running database server', { pid });
  const hasEnded = async (): Promise<boolean> => waitUntilGone(pid, clusterDir, 0);
  const readiness = await waitUntilReady(pid, readinessOptions(start, hasEnded));
  if (readiness.kind === 'ready') return runningServer(start, readiness, true);
  if (readiness.kind === 'ended') return null;
  if (readiness.kind === 'timeout') throw startTimeoutError(start, pid, readiness.status);
  // The server's socket is gone, for instance with a cleaned temporary folder. A postmaster creates its socket only
  // when it starts.
  options.log('restarting the database server, which cannot be reached', { pid, reason: readiness.reason });
  await stopPostmaster(pid, start.clusterDir, start.options.log);
  return null;
}

interface PreparedCluster {
  readonly programs: Programs;
  readonly osUser: OsUser;
  readonly socketDir: string;
}

/** Prepares everything that the server needs to start; creates the cluster when there is none. */
async function prepareCluster({ dataDir, clusterDir, options }: StartContext): Promise<PreparedCluster> {
  const { binDir, log, settings } = options;
  const clusterMajor = await readClusterMajor(clusterDir);
  if (clusterMajor === null) await refuseUnfinishedUpgrade(dataDir);
  const programs = await findPrograms({ binDir, clusterMajor, clusterDir });
  const osUser = await chooseOsUser({ dataDir, clusterDir, programs });
  if (clusterMajor === null) {
    log('creating the database files', { folder: clusterDir, version: programs.version, binDir: programs.binDir });
    await createCluster({ dataDir, clusterDir, programs, osUser, sync: settings?.['fsync'] !== 'off' });
  }
  const socketDir = await makeSocketFolder(dataDir, osUser);
  await removeReusedPidLocks(clusterDir, socketDir);
  return { programs, osUser, socketDir };
}

/** Starts a postmaster. Null: the new postmaster found another one running, which the caller has to check. */
async function launchAndAwaitReady(
  start: StartContext,
  { programs, osUser, socketDir }: PreparedCluster,
): Promise<EmbeddedServer | null> {
  const { dataDir, clusterDir, options } = start;
  const args = ['-D', clusterDir, ...serverSettingArguments(socketDir, SOCKET_PORT, options.settings ?? {})];
  options.log('starting the database server', { folder: clusterDir, version: programs.version, as: osUser.kind });
  const log = await openServerLog(dataDir);
  const { file, args: allArgs, identity } = commandAs(osUser, programs.postgres, args);
  const child = spawn(file, allArgs, {
    ...identity,
    cwd: '/',
    env: programEnvironment(),
    detached: true,
    stdio: ['ignore', log.handle.fd, log.handle.fd],
  });
  let exitDescription: string | null = null;
  child.once('exit', (code, by) => {
    exitDescription = code === null ? `was ended by ${by}` : `ended with code ${code}`;
  });
  child.unref();
  try {
    await once(child, 'spawn');
  } finally {
    await log.handle.close();
  }
  const pid = child.pid ?? 0;
  const readiness = await waitUntilReady(
    pid,
    readinessOptions(start, () => exitDescription !== null),
  ).catch(async (error) => {
    await stopPostmaster(pid, start.clusterDir, start.options.log);
    throw error;
  });
  if (readiness.kind === 'ready') return runningServer(start, readiness, false);
  if (readiness.kind === 'timeout') throw startTimeoutError(start, pid, readiness.status);
  if (readiness.kind === 'unreachable') {
    await stopPostmaster(pid, start.clusterDir, start.options.log);
    throw await startFailedError(start, log, `cannot be reached: ${readiness.reason}`);
  }
  // A Klatch that was killed during its start may have left a postmaster that was faster than this one.
  if ((await findPostmaster(clusterDir)) !== null) return null;
  throw await startFailedError(start, log, exitDescription ?? 'ended');
}

function readinessOptions(
  { clusterDir, deadlineMs, options }: StartContext,
  hasEnded: () => boolean | Promise<boolean>,
) {
  const { isCancelled = () => false } = options;
  const recoveryDeadlineMs = performance.now() + RECOVERY_TIMEOUT_MS;
  const onProgress = (fields: Record<string, unknown>) => options.log('waiting for the database server', fields);
  return { clusterDir, deadlineMs, recoveryDeadlineMs, isCancelled, hasEnded, onProgress };
}

function runningServer(
  start: StartContext,
  { postmaster, version }: Extract<ReadinessResult, { kind: 'ready' }>,
  adopted: boolean,
): EmbeddedServer {
  const { pid, port, socketDir } = postmaster;
  start.options.log('the database server is ready', { pid, version, socketDir, adopted });
  let stopping: Promise<void> | null = null;
  const stop = async (): Promise<void> => {
    start.options.log('stopping the database server', { pid });
    await stopPostmaster(pid, start.clusterDir, start.options.log);
    await removeOutsideSocketFolder(socketDir, start.dataDir);
  };
  return {
    socketDir,
    port,
    user: APP_ROLE,
    database: APP_DATABASE,
    version,
    adopted,
    stop: () => (stopping ??= stop()),
  };
}

/**
 * A recovering server keeps running: if it were stopped now, it would begin again at the next start, and never finish.
 */
function startTimeoutError(
  { clusterDir, dataDir, startBeganAtMs }: StartContext,
  pid: number,
  status: string,
): EmbeddedError {
  const seconds = Math.round((performance.now() - startBeganAtMs) / 1000);
  return new EmbeddedError(
    'start-timeout',
    `The database server of ${clusterDir} (pid ${pid}) is still ${status} after ${seconds} s. It goes on ` +
      `by itself: start Klatch again in a while. Its log is ${join(dataDir, 'postgresql.log')}.`,
  );
}

async function startFailedError({ clusterDir }: StartContext, log: ServerLog, what: string): Promise<EmbeddedError> {
  return new EmbeddedError(
    'start-failed',
    `The database server of ${clusterDir} ${what} while it was being started. The last lines of ${log.path}:\n` +
      (await readLogTail(log)),
  );
}

/** Adds the configuration key to errors of the file system, which name only a path; returns other errors unchanged. */
function explain(error: unknown, dataDir: string): unknown {
  if (error instanceof EmbeddedError || !isSystemError(error)) return error;
  const message = `The data directory ${dataDir} cannot be used for the database: ${error.message}. Put that right, or set data-dir to another folder.`;
  return new EmbeddedError('file-system', message, { cause: error });
}

/** Checks the fields: under jest the system's errors come from another realm, where instanceof fails. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return typeof error === 'object' && error !== null && 'syscall' in error && 'message' in error;
}
