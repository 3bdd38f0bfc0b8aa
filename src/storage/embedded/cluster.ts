import { lchown, lstat, mkdtemp, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { commandAs, type OsUser } from './os-user.ts';
import { EmbeddedError } from './embedded-error.ts';
import { findPostmaster, stopPostmaster } from './postmaster.ts';
import type { PostgresqlPrograms } from './programs.ts';
import { lastLines, runProgram } from './run-program.ts';

/** The superuser of each private cluster. Klatch itself connects as another role. */
export const SUPERUSER = 'postgres';
/** The time-out of initdb. It takes 0.7 s on an SSD, and much longer on a slow disk. */
const INITDB_TIMEOUT_MS = 180_000;
/** The prefix of a folder in which a new cluster is being built. A start removes those that a killed process left. */
export const UNFINISHED_CLUSTER_PREFIX = 'postgresql.new-';
/**
 * The folder of a complete copy of the cluster for a newer version of PostgreSQL. `klatch db upgrade` makes the copy,
 * which then replaces the cluster.
 */
export const UPGRADED_CLUSTER_DIR = 'postgresql.upgraded';
/**
 * The prefix of a folder with a cluster that an upgrade replaced. The major version of that cluster follows the prefix.
 */
export const OLD_CLUSTER_PREFIX = 'postgresql.old-';

interface ClusterOptions {
  readonly dataDir: string;
  readonly clusterDir: string;
  readonly programs: PostgresqlPrograms;
  readonly osUser: OsUser;
  /** False: the creation does not wait until the files are on disk (for tests). */
  readonly syncsToDisk: boolean;
}

/**
 * The major version of PostgreSQL that the cluster's files have; null: there are no files. Rejects if the folder holds
 * anything but a cluster.
 */
export async function readClusterMajor(clusterDir: string): Promise<number | null> {
  const version = await readFile(join(clusterDir, 'PG_VERSION'), 'utf8').catch((error: NodeJS.ErrnoException) => {
    // The user of Klatch may not enter the cluster's folder, since only the folder's owner and root may.
    if (error.code === 'EACCES') throw clusterUnreadableError(clusterDir);
    return nullIfNotFound(error);
  });
  if (version !== null) {
    const major = Number.parseInt(version, 10);
    if (major > 0) return major;
  } else {
    const entries = await readdir(clusterDir).catch(nullIfNotFound);
    if (entries === null || entries.length === 0) return null;
  }
  throw new EmbeddedError(
    'cluster-invalid',
    `${clusterDir} holds files, but not those of a PostgreSQL server (there is no usable PG_VERSION). Move it away, ` +
      'restore it from a backup, or set data-dir to another folder.',
  );
}

/**
 * Throws if an interrupted `klatch db upgrade` has renamed the cluster: there is data, although no folder `postgresql`.
 */
export async function refuseUnfinishedUpgrade(dataDir: string): Promise<void> {
  const names = (await readdir(dataDir)).filter(
    (name) => name.startsWith(OLD_CLUSTER_PREFIX) || name === UPGRADED_CLUSTER_DIR,
  );
  if (names.length === 0) return;
  throw new EmbeddedError(
    'upgrade-unfinished',
    `An upgrade of the database in ${dataDir} was cut off (there is ${names.join(', ')}, and no postgresql). Nothing is ` +
      'lost: run "klatch db upgrade", which finishes it.',
  );
}

/**
 * Throws if the cluster's folder is a symbolic link. An upgrade renames a new cluster to this path. The rename would
 * replace the link and not its target, and so move the database to another disk.
 */
export async function refuseSymlink(clusterDir: string): Promise<void> {
  const found = await lstat(clusterDir).catch(nullIfNotFound);
  if (found?.isSymbolicLink() !== true) return;
  throw new EmbeddedError(
    'cluster-linked',
    `The database folder ${clusterDir} is a link, which Klatch does not follow: mount the other disk there, or move all ` +
      'of the data directory and set data-dir to it.',
  );
}

/**
 * Creates a cluster in a temporary folder, which gets the final name only when it is complete and on disk. A start that
 * is killed before the rename leaves nothing that looks like a cluster.
 */
export async function createCluster(options: ClusterOptions): Promise<void> {
  const { dataDir, clusterDir, osUser } = options;
  // The name is new each time: an initdb whose starter was killed may still be writing into the previous folder.
  const unfinished = await mkdtemp(join(dataDir, UNFINISHED_CLUSTER_PREFIX));
  try {
    // The owner of the data directory may have replaced the new folder by a symbolic link, which `lchown` does not
    // follow.
    if (osUser.kind === 'switch') await lchown(unfinished, osUser.uid, osUser.gid);
    await runInitdb(unfinished, options);
    // An empty folder with the final name may exist already: rename replaces it.
    await rename(unfinished, clusterDir);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    throw error;
  }
  if (options.syncsToDisk) await syncFolder(dataDir);
}

/**
 * Removes folders that killed starts and upgrades left, and stops servers that run in them. Resolves with the folders
 * that could not be removed.
 */
export async function removeUnfinishedClustersListingFailures(dataDir: string): Promise<string[]> {
  const failedPaths: string[] = [];
  // If there is a cluster, a folder `postgresql.upgraded` is a copy that has not replaced it. The copy is out of date
  // as soon as the cluster is used again.
  const isUpgradedCopyOutdated = (await readClusterMajor(join(dataDir, 'postgresql'))) !== null;
  for (const name of await readdir(dataDir)) {
    if (!name.startsWith(UNFINISHED_CLUSTER_PREFIX) && !(isUpgradedCopyOutdated && name === UPGRADED_CLUSTER_DIR))
      continue;
    const path = join(dataDir, name);
    const staged = await findPostmaster(join(path, 'postgresql'));
    if (staged !== null) await stopPostmaster(staged.pid, join(path, 'postgresql'), () => {});
    // An initdb that outlived its killed start can add files during the removal; the next start removes these.
    await rm(path, { recursive: true, force: true, maxRetries: 3 }).catch(() => failedPaths.push(path));
  }
  return failedPaths;
}

async function runInitdb(folder: string, { programs, osUser, syncsToDisk: sync }: ClusterOptions): Promise<void> {
  const args = [
    `--pgdata=${folder}`,
    `--username=${SUPERUSER}`,
    '--encoding=UTF8',
    ...initdbLocaleArguments(programs.major),
    '--data-checksums',
    // The mode of the socket's folder decides who may connect. Over TCP nobody may, even if TCP is switched on.
    '--auth-local=trust',
    '--auth-host=reject',
    ...(sync ? [] : ['--no-sync']),
  ];
  const {
    exitCode: code,
    stdout,
    stderr,
  } = await runProgram(commandAs(osUser, programs.initdbPath, args), INITDB_TIMEOUT_MS);
  if (code === 0) return;
  throw new EmbeddedError(
    'create-failed',
    `PostgreSQL ${programs.postgresqlVersion} (${programs.binDir}) could not create the database files in ${folder}: ` +
      `initdb ${code === null ? `did not finish within ${INITDB_TIMEOUT_MS / 1000} s` : `ended with code ${code}`}. ` +
      `Its last lines: ${lastLines(stderr || stdout, 5)}`,
  );
}

/**
 * A locale that sorts by code point and lower-cases all alphabets, in the same way on every machine. Sorting by a
 * host's locale breaks indexes when its C library changes, and plain C does not lower-case letters beyond ASCII.
 */
function initdbLocaleArguments(major: number): string[] {
  return major >= 17
    ? ['--locale-provider=builtin', '--builtin-locale=C.UTF-8']
    : ['--lc-collate=C', '--lc-ctype=C.UTF-8'];
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function clusterUnreadableError(clusterDir: string): EmbeddedError {
  return new EmbeddedError(
    'owner-mismatch',
    `The database files in ${clusterDir} belong to another user than Klatch runs as (uid ${process.geteuid?.()}). ` +
      'Start Klatch as their owner or as root, or set data-dir to another folder.',
  );
}

function nullIfNotFound(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
