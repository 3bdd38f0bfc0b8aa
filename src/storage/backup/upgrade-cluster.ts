import { lchown, mkdtemp, readdir, realpath, rename, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import { syncFolder } from '../../config/durable-file.ts';
import { Connection, type ConnectionTarget } from '../db/connection.ts';
import { DataDirLock } from '../../data-dir/lock.ts';
import {
  OLD_CLUSTER_PREFIX,
  readClusterMajor,
  UNFINISHED_CLUSTER_PREFIX,
  UPGRADED_CLUSTER_DIR,
} from '../embedded/cluster.ts';
import { startEmbedded, type EmbeddedServer } from '../embedded/embedded.ts';
import { findPostmaster } from '../embedded/postmaster.ts';
import { findPrograms, type PostgresqlPrograms } from '../embedded/programs.ts';
import { BackupError } from './format.ts';
import { loadDatabase, type DatabaseLoadResult } from './load.ts';
import type { ConnectLog } from './connect.ts';
import { withSnapshot } from './snapshot.ts';
import type { CopyProgress } from './write.ts';

/**
 * The disk space that an upgrade needs besides the data: the WAL of the new cluster, and the files of an empty cluster.
 */
const SPACE_OVERHEAD_BYTES = 512 * 1024 * 1024;
const QUERY_TIMEOUT_MS = 30_000;

/** The steps of an upgrade in their order. An interruption after each of them leaves a different state. */
export const upgradeSteps = ['copying', 'copied', 'complete', 'old-renamed', 'swapped'] as const;
type UpgradeStep = (typeof upgradeSteps)[number];

interface UpgradeOptions {
  /** The version of Klatch. */
  readonly klatchVersion: string;
  /** The folder with the programs of the old version of PostgreSQL; null: Klatch searches for it. */
  readonly oldBinDir: string | null;
  readonly log: ConnectLog;
  readonly onProgress?: (progress: CopyProgress) => void;
  /** Aborts the upgrade, with the reason of the signal. */
  readonly signal?: AbortSignal;
  /** Called at each step; the upgrade waits until its promise resolves. */
  readonly onStep?: (step: UpgradeStep) => Promise<void> | void;
}

/** The result of an upgrade. */
export type UpgradeResult =
  /** The database files already have the newest version of the programs that were found. */
  | { readonly kind: 'current'; readonly major: number }
  /** An earlier run was interrupted between its two renames, and this run finished it. */
  | { readonly kind: 'finished'; readonly major: number }
  | {
      readonly kind: 'upgraded';
      readonly from: number;
      readonly major: number;
      readonly rows: number;
      /** The folder that keeps the old database files. */
      readonly kept: string;
      /** Other databases in the old cluster: they are not copied. */
      readonly uncopiedDatabases: readonly string[];
    };

/**
 * Moves the embedded database of a stopped server to the newest major version of PostgreSQL that is installed. It
 * creates a new cluster beside the old one and fills it in one transaction. Then it renames the old cluster, which is
 * kept, and gives the new one its name. An interruption leaves the old or the new cluster in place. Between the two
 * renames it leaves a state that a start refuses and the next run finishes. Rejects with BackupError, EmbeddedError,
 * DataDirLockedError, and the rejections of the copy.
 */
export async function upgradeCluster(config: Config, options: UpgradeOptions): Promise<UpgradeResult> {
  const lock = await DataDirLock.acquire(config.dataDir);
  try {
    const dataDir = await realpath(config.dataDir);
    const clusterDir = join(dataDir, 'postgresql');
    const from = await readClusterMajor(clusterDir);
    if (from === null) return await finishSwap(dataDir);
    const newClusterPrograms = await findConfiguredOrNewestPrograms(config, from, clusterDir);
    if (newClusterPrograms.major <= from) return { kind: 'current', major: from };
    const context = { config, dataDir, clusterDir, oldMajor: from, newClusterPrograms };
    const kept = join(dataDir, `${OLD_CLUSTER_PREFIX}${from}`);
    if (await exists(kept)) {
      throw new BackupError(`${kept} is there from an earlier upgrade: remove it, or move it away, and repeat this.`);
    }
    await requireDiskSpace(clusterDir);
    const { rows, uncopiedDatabases } = await copyIntoNewCluster(context, options);
    await swapClusters(dataDir, kept, options);
    return { kind: 'upgraded', from, major: newClusterPrograms.major, rows, kept, uncopiedDatabases };
  } finally {
    await lock.release();
  }
}

/** Removes the old files that upgrades have kept; resolves with their folders. The server may run. */
export async function removeOldClusters(dataDir: string): Promise<string[]> {
  if ((await readClusterMajor(join(dataDir, 'postgresql'))) === null) {
    throw new BackupError(`There is no database in ${dataDir} that would make the old files superfluous.`);
  }
  const names = (await readdir(dataDir)).filter((name) => name.startsWith(OLD_CLUSTER_PREFIX));
  const folders = names.map((name) => join(dataDir, name));
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
  return folders;
}

interface UpgradeContext {
  readonly config: Config;
  readonly dataDir: string;
  readonly clusterDir: string;
  readonly oldMajor: number;
  readonly newClusterPrograms: PostgresqlPrograms;
}

/** The programs in `bin-dir` if they are newer than the database files, else the newest that are installed. */
async function findConfiguredOrNewestPrograms(
  { postgresql }: Config,
  oldMajor: number,
  clusterDir: string,
): Promise<PostgresqlPrograms> {
  const named = await findPrograms({ binDir: postgresql.binDir, clusterMajor: null, clusterDir });
  if (named.major > oldMajor || postgresql.binDir === null) return named;
  return findPrograms({ binDir: null, clusterMajor: null, clusterDir });
}

async function findOldBinDirUnlessRunning(context: UpgradeContext, oldBinDir: string | null): Promise<string | null> {
  const { config, clusterDir, oldMajor: from } = context;
  // A killed upgrade has left the old server running, so this run need not start it.
  if ((await findPostmaster(clusterDir)) !== null) return null;
  const binDirCandidates = oldBinDir === null ? [config.postgresql.binDir, null] : [oldBinDir];
  let cause: unknown = null;
  for (const binDir of binDirCandidates) {
    try {
      return (await findPrograms({ binDir, clusterMajor: from, clusterDir })).binDir;
    } catch (error) {
      cause = error;
    }
  }
  throw new BackupError(
    `The database files in ${clusterDir} are of PostgreSQL ${from}, whose programs are needed once more to read them, and ` +
      `${oldBinDir ?? 'this machine'} has none: install the package postgresql-${from}, or unpack ` +
      `klatch-postgresql-${from}.*-linux-x64.zip and give its bin folder with --old-bin-dir.`,
    { cause },
  );
}

async function copyIntoNewCluster(
  context: UpgradeContext,
  options: UpgradeOptions,
): Promise<{ rows: number; uncopiedDatabases: string[] }> {
  const { config, dataDir, clusterDir, newClusterPrograms } = context;
  const binDir = await findOldBinDirUnlessRunning(context, options.oldBinDir);
  const { log } = options;
  const servers: EmbeddedServer[] = [];
  let stagingDir: string | null = null;
  try {
    const old = await startEmbedded({ dataDir, binDir, log });
    servers.push(old);
    stagingDir = await mkdtemp(join(dataDir, UNFINISHED_CLUSTER_PREFIX));
    // If Klatch runs as root, the owner of the old files gets the new ones.
    const { uid, gid } = await stat(clusterDir);
    if (process.geteuid?.() === 0) await lchown(stagingDir, uid, gid);
    const fresh = await startEmbedded({ dataDir: stagingDir, binDir: newClusterPrograms.binDir, log });
    servers.unshift(fresh);
    const { rowCount: rows } = await copyDatabase(
      embeddedConnectionTarget(old, config),
      embeddedConnectionTarget(fresh, config),
      options,
    );
    const uncopiedDatabases = await listOtherDatabases(embeddedConnectionTarget(old, config));
    await options.onStep?.('copied');
    // A server that stops normally has written everything to disk.
    for (const server of servers.splice(0)) await server.stop();
    await rename(join(stagingDir, 'postgresql'), join(dataDir, UPGRADED_CLUSTER_DIR));
    syncFolder(dataDir);
    await options.onStep?.('complete');
    return { rows, uncopiedDatabases };
  } finally {
    for (const server of servers) await server.stop();
    if (stagingDir !== null) await rm(stagingDir, { recursive: true, force: true });
  }
}

async function copyDatabase(
  from: ConnectionTarget,
  to: ConnectionTarget,
  options: UpgradeOptions,
): Promise<DatabaseLoadResult> {
  const { klatchVersion: version, signal, onProgress } = options;
  const abortSignal = signal ?? new AbortController().signal;
  return withSnapshot(from, { klatchVersion: version, signal: abortSignal }, (snapshot) =>
    loadDatabase(
      to,
      async (loader) => {
        await loader.begin(snapshot.header);
        await options.onStep?.('copying');
        for (const table of snapshot.header.tables) await loader.copyRows(table.name, snapshot.copy(table));
      },
      { sealer: null, signal: abortSignal, ...(onProgress === undefined ? {} : { onProgress }) },
    ),
  );
}

function embeddedConnectionTarget(
  { socketDir: host, port, user, database }: EmbeddedServer,
  { postgresql }: Config,
): ConnectionTarget {
  const { connectTimeoutMs, lockTimeoutMs } = postgresql;
  return { host, port, user, database, password: '', connectTimeoutMs, lockTimeoutMs };
}

async function listOtherDatabases(target: ConnectionTarget): Promise<string[]> {
  const connection = new Connection(target, 'upgrade');
  try {
    const rows = await connection.run(
      (sql) => sql<{ name: string }[]>`
        select datname as name from pg_database
        where not datistemplate and datname not in ('postgres', current_database()) order by 1`,
      QUERY_TIMEOUT_MS,
    );
    return rows.map(({ name }) => name);
  } finally {
    connection.close();
  }
}

/**
 * Gives the new database files the name of the old ones. Only between the two renames there are no files of that name.
 */
async function swapClusters(dataDir: string, keptDir: string, { onStep }: UpgradeOptions): Promise<void> {
  const clusterDir = join(dataDir, 'postgresql');
  await rename(clusterDir, keptDir);
  syncFolder(dataDir);
  await onStep?.('old-renamed');
  await rename(join(dataDir, UPGRADED_CLUSTER_DIR), clusterDir);
  syncFolder(dataDir);
  await onStep?.('swapped');
}

/** Finishes a run that was interrupted between the two renames: the new files were complete before the first. */
async function finishSwap(dataDir: string): Promise<UpgradeResult> {
  const upgraded = join(dataDir, UPGRADED_CLUSTER_DIR);
  const major = (await exists(upgraded)) ? await readClusterMajor(upgraded) : null;
  if (major === null) throw new BackupError(`There is no database in ${dataDir} yet: the first start makes one.`);
  await rename(upgraded, join(dataDir, 'postgresql'));
  syncFolder(dataDir);
  return { kind: 'finished', major };
}

/**
 * Throws if the disk has too little space for the copy. The copy writes rows densely, so it takes no more space than
 * the old files without their WAL.
 */
async function requireDiskSpace(clusterDir: string): Promise<void> {
  const needed = (await sizeOf(join(clusterDir, 'base'))) + SPACE_OVERHEAD_BYTES;
  const { bavail, bsize } = await statfs(clusterDir);
  if (bavail * bsize >= needed) return;
  const mib = (bytes: number): string => `${Math.ceil(bytes / 1024 / 1024)} MiB`;
  throw new BackupError(
    `There is not enough room beside ${clusterDir}: ${mib(needed)} are needed, ${mib(bavail * bsize)} are free.`,
  );
}

async function sizeOf(folder: string): Promise<number> {
  let total = 0;
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    // A running server may remove a file meanwhile: the file then counts as empty.
    total += (await stat(join(entry.parentPath, entry.name)).catch(() => null))?.size ?? 0;
  }
  return total;
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
