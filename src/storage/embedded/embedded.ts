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
import { findPrograms, type PostgresqlPrograms } from './programs.ts';
import { APP_DATABASE, APP_DATABASE_ROLE, waitUntilReady, type ReadinessResult } from './readiness.ts';
import { programEnvironment } from './run-program.ts';
import { openServerLog, readLogTail, type ServerLog } from './server-log.ts';
import { serverSettingArguments } from './settings.ts';
import { makeSocketFolder, removeOutsideSocketFolder, SOCKET_PORT } from './socket-folder.ts';

export { EmbeddedError } from './embedded-error.ts';

/**
 * The time-out of the server's first answer, from the time when Klatch finds or starts the server. Recovery after a
 * crash has a longer one (`RECOVERY_TIMEOUT_MS`).
 */
const START_TIMEOUT_MS = 60_000;
/**
 * The time-out of the server's recovery after a crash. On a slow disk recovery takes many minutes. If the start of
 * Klatch gave up earlier, a service manager would end the server too, and the recovery would begin again.
 */
const RECOVERY_TIMEOUT_MS = 6 * 60 * 60_000;
/**
 * How many times a start looks for a running server and starts one if there is none. It repeats this if a server ends
 * or appears meanwhile.
 */
const MAX_START_ATTEMPTS = 5;

export interface EmbeddedOptions {
  /** Klatch's data directory, created if missing; the cluster is its folder `postgresql`. The caller holds its lock. */
  readonly dataDir: string;
  /** The value of `services.postgresql.bin-dir`; null: Klatch searches for PostgreSQL's programs. */
  readonly binDir: string | null;
  /** Called with progress: an event in words ("creating the database files") and fields. */
  readonly log: (event: string, fields?: Record<string, unknown>) => void;
  /**
   * Further settings for PostgreSQL, which override Klatch's. With `fsync: 'off'` the creation of the cluster does not
   * wait for the disk.
   */
  readonly serverSettings?: Readonly<Record<string, string>>;
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
  /** The role `klatch`, which is no superuser. The superuser `postgresPath` connects in the same way. */
  readonly user: string;
  /** The database `klatch`, owned by the role `klatch`. It is encoded in UTF-8 and sorts by code point. */
  readonly database: string;
  /** The version of PostgreSQL, for instance "18.4". */
  readonly postgresqlVersion: string;
  /** True if the server was running already, because the previous Klatch was killed. */
  readonly wasAlreadyRunning: boolean;
  /**
   * Stops the server in PostgreSQL's mode "fast" (sessions end, nothing is lost), and after 20 s in the mode
   * "immediate". Idempotent; rejects with EmbeddedError.
   */
  stop(): Promise<void>;
}

/** The values of one start. Each attempt that prepares the cluster sets a new `deadlineMs`. Paths are real paths. */
interface StartContext {
  readonly dataDir: string;
  readonly clusterDir: string;
  readonly options: EmbeddedOptions;
  readonly startBeganAtMs: number;
  readonly deadlineMs: number;
}

/**
 * Starts the private PostgreSQL server of a data directory, or takes over the one that is running there. The first
 * start creates the server's files. The server has a process session of its own, so Ctrl-C in the terminal reaches only
 * Klatch, which then stops the server. Rejects with EmbeddedError.
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
    throw toEmbeddedError(error, options.dataDir);
  }
}

async function startOrAdopt(initialContext: StartContext): Promise<EmbeddedServer> {
  let context = initialContext;
  for (let attempt = 1; attempt <= MAX_START_ATTEMPTS; attempt += 1) {
    const adopted = await adoptRunningServer(context);
    if (adopted !== null) return adopted;
    const orphans = await waitForOrphans(context.clusterDir, context.deadlineMs - performance.now());
    if (orphans.length > 0) {
      const message = `Processes of an earlier database server are still at work in ${context.clusterDir} (pid ${orphans.join(', ')}). End them with "kill -QUIT", then start again.`;
      throw new EmbeddedError('start-timeout', message);
    }
    if ((await findPostmaster(context.clusterDir)) !== null) continue;
    const prepared = await prepareCluster(context);
    // The time-out of the launch begins here, because creating the cluster has a time-out of its own.
    context = { ...context, deadlineMs: performance.now() + START_TIMEOUT_MS };
    const launched = await launchAndAwaitReady(context, prepared);
    if (launched !== null) return launched;
  }
  throw new EmbeddedError(
    'start-failed',
    `The database server in ${initialContext.clusterDir} ended ${MAX_START_ATTEMPTS} times while it was being started. ` +
      `Its log is ${join(initialContext.dataDir, 'postgresql.log')}.`,
  );
}

/** Takes over a running postmaster. Null: none runs, or it has ended or was stopped meanwhile. */
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
  if (readiness.kind === 'ready') return createServerHandle(start, readiness, true);
  if (readiness.kind === 'ended') return null;
  if (readiness.kind === 'timeout') throw startTimeoutError(start, pid, readiness.status);
  // The server's socket is gone, for instance because the temporary folder was cleaned. A postmaster creates its socket
  // only when it starts, so it has to start again.
  options.log('restarting the database server, which cannot be reached', { pid, reason: readiness.reason });
  await stopPostmaster(pid, start.clusterDir, start.options.log);
  return null;
}

interface PreparedCluster {
  readonly programs: PostgresqlPrograms;
  readonly osUser: OsUser;
  readonly socketDir: string;
}

/** Prepares everything that the server needs to start; creates the cluster when there is none. */
async function prepareCluster({ dataDir, clusterDir, options }: StartContext): Promise<PreparedCluster> {
  const { binDir, log, serverSettings: settings } = options;
  const clusterMajor = await readClusterMajor(clusterDir);
  if (clusterMajor === null) await refuseUnfinishedUpgrade(dataDir);
  const programs = await findPrograms({ binDir, clusterMajor, clusterDir });
  const osUser = await chooseOsUser({ dataDir, clusterDir, programs });
  if (clusterMajor === null) {
    log('creating the database files', {
      folder: clusterDir,
      version: programs.postgresqlVersion,
      binDir: programs.binDir,
    });
    await createCluster({ dataDir, clusterDir, programs, osUser, syncsToDisk: settings?.['fsync'] !== 'off' });
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
  const args = ['-D', clusterDir, ...serverSettingArguments(socketDir, SOCKET_PORT, options.serverSettings ?? {})];
  options.log('starting the database server', {
    folder: clusterDir,
    version: programs.postgresqlVersion,
    as: osUser.kind,
  });
  const log = await openServerLog(dataDir);
  const { programPath: file, args: allArgs, identity } = commandAs(osUser, programs.postgresPath, args);
  const child = spawn(file, allArgs, {
    ...identity,
    cwd: '/',
    env: programEnvironment(),
    detached: true,
    stdio: ['ignore', log.handle.fd, log.handle.fd],
  });
  let exitDescription: string | null = null;
  child.once('exit', (code, signal) => {
    exitDescription = code === null ? `was ended by ${signal}` : `ended with code ${code}`;
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
  if (readiness.kind === 'ready') return createServerHandle(start, readiness, false);
  if (readiness.kind === 'timeout') throw startTimeoutError(start, pid, readiness.status);
  if (readiness.kind === 'unreachable') {
    await stopPostmaster(pid, start.clusterDir, start.options.log);
    throw await startFailedError(start, log, `cannot be reached: ${readiness.reason}`);
  }
  // A Klatch that was killed during its start may have left a postmaster, which took the cluster before the new one
  // did.
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

function createServerHandle(
  start: StartContext,
  { postmaster, version }: Extract<ReadinessResult, { kind: 'ready' }>,
  wasAlreadyRunning: boolean,
): EmbeddedServer {
  const { pid, port, socketDir } = postmaster;
  start.options.log('the database server is ready', { pid, version, socketDir, adopted: wasAlreadyRunning });
  let stopping: Promise<void> | null = null;
  const stop = async (): Promise<void> => {
    start.options.log('stopping the database server', { pid });
    await stopPostmaster(pid, start.clusterDir, start.options.log);
    await removeOutsideSocketFolder(socketDir, start.dataDir);
  };
  return {
    socketDir,
    port,
    user: APP_DATABASE_ROLE,
    database: APP_DATABASE,
    postgresqlVersion: version,
    wasAlreadyRunning,
    stop: () => (stopping ??= stop()),
  };
}

/**
 * The error of a start that timed out and leaves the server running. If each start stopped a recovering server, the
 * recovery would begin again at the next start and never finish.
 */
function startTimeoutError(
  { clusterDir, dataDir, startBeganAtMs }: StartContext,
  pid: number,
  postmasterStatus: string,
): EmbeddedError {
  const seconds = Math.round((performance.now() - startBeganAtMs) / 1000);
  return new EmbeddedError(
    'start-timeout',
    `The database server of ${clusterDir} (pid ${pid}) is still ${postmasterStatus} after ${seconds} s. It goes on ` +
      `by itself: start Klatch again in a while. Its log is ${join(dataDir, 'postgresql.log')}.`,
  );
}

async function startFailedError(
  { clusterDir }: StartContext,
  log: ServerLog,
  problemPhrase: string,
): Promise<EmbeddedError> {
  return new EmbeddedError(
    'start-failed',
    `The database server of ${clusterDir} ${problemPhrase} while it was being started. The last lines of ${log.path}:\n` +
      (await readLogTail(log)),
  );
}

/** Adds the key `data-dir` to errors of the file system, which name only a path; returns other errors unchanged. */
function toEmbeddedError(error: unknown, dataDir: string): unknown {
  if (error instanceof EmbeddedError || !isSystemError(error)) return error;
  const message = `The data directory ${dataDir} cannot be used for the database: ${error.message}. Put that right, or set data-dir to another folder.`;
  return new EmbeddedError('file-system', message, { cause: error });
}

/**
 * The function checks the error's fields: under jest the system's errors come from another realm, where instanceof
 * fails.
 */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return typeof error === 'object' && error !== null && 'syscall' in error && 'message' in error;
}
