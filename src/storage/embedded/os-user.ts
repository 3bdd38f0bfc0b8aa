import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { readPasswd, type PasswdEntry } from '../../data-dir/passwd.ts';
import { EmbeddedError } from './embedded-error.ts';
import type { PostgresqlPrograms } from './programs.ts';
import { lastLines, runProgram, type ProgramCommand } from './run-program.ts';

/** The usual uid and gid of the account `nobody`. */
const NOBODY_ID = 65_534;
const ACCESS_PROBE_TIMEOUT_MS = 10_000;

/**
 * The user that PostgreSQL runs as; PostgreSQL refuses to run as root.
 * - `self`: Klatch is not root, so PostgreSQL runs as Klatch's user.
 * - `switch`: Klatch is root and starts PostgreSQL as another user.
 * - `namespace`: Klatch is root. PostgreSQL stays root for the file system, while a user namespace shows it the uid
 *   `uidInsideNamespace` instead of 0.
 *
 * `uid` and `gid` are the owners of the files on disk, `uidInsideNamespace` is the uid that a namespace shows.
 */
export type OsUser =
  | { readonly kind: 'self'; readonly uid: number; readonly gid: number }
  | { readonly kind: 'switch'; readonly uid: number; readonly gid: number }
  | { readonly kind: 'namespace'; readonly uid: 0; readonly gid: 0; readonly uidInsideNamespace: number };

/** The folders that the user of PostgreSQL has to reach. */
interface OsUserPaths {
  /** Klatch's data directory, a real path. */
  readonly dataDir: string;
  readonly clusterDir: string;
  readonly programs: PostgresqlPrograms;
}

/**
 * The command that runs a program as the user of PostgreSQL. `unshare` replaces itself by exec, so the pid is always
 * the program's.
 */
export function commandAs(osUser: OsUser, file: string, args: readonly string[]): ProgramCommand {
  if (osUser.kind === 'self') return { programPath: file, args, identity: {} };
  if (osUser.kind === 'switch') return { programPath: file, args, identity: { uid: osUser.uid, gid: osUser.gid } };
  const map = [`--map-user=${osUser.uidInsideNamespace}`, `--map-group=${osUser.uidInsideNamespace}`];
  return { programPath: 'unshare', args: ['--user', ...map, '--', file, ...args], identity: {} };
}

/**
 * Chooses the user of PostgreSQL, and proves that the user reaches the data directory and the programs. Rejects with
 * EmbeddedError.
 */
export async function chooseOsUser(paths: OsUserPaths): Promise<OsUser> {
  const uid = process.geteuid?.() ?? NOBODY_ID;
  const owner = await ownerOf(paths.clusterDir);
  if (uid !== 0) {
    if (owner !== null && owner.uid !== uid) throw ownerMismatchError(paths, owner.uid, uid);
    return { kind: 'self', uid, gid: process.getegid?.() ?? NOBODY_ID };
  }
  const passwd = readPasswd();
  const namespace: OsUser = { kind: 'namespace', uid: 0, gid: 0, uidInsideNamespace: namedNamespaceUid(passwd) };
  if (owner?.uid === 0) return requireNamespace(paths, namespace, null);

  const osUser: OsUser = { kind: 'switch', ...(owner ?? (await chooseNewClusterOwner(paths.dataDir, passwd))) };
  const inaccessiblePath = await findInaccessiblePath(osUser, paths);
  if (inaccessiblePath === null) return osUser;
  // Existing database files keep their owner, so a namespace does not help: inside it, root lacks its privileges and
  // could not read them.
  if (owner !== null) throw folderInaccessibleError(paths, inaccessiblePath, osUser.uid);
  return requireNamespace(paths, namespace, { inaccessiblePath, uid: osUser.uid });
}

/** The first of `folders` that a user cannot enter, else null. */
export async function firstInaccessibleFolder(osUser: OsUser, folders: readonly string[]): Promise<string | null> {
  const result = await probe(osUser, folders, '');
  return result.kind === 'open' ? null : result.kind === 'closed' ? result.path : (folders.at(-1) ?? '/');
}

/** The owner of a new cluster: the data directory's owner if that is not root, else `postgres`, else `nobody`. */
async function chooseNewClusterOwner(
  dataDir: string,
  passwd: readonly PasswdEntry[],
): Promise<{ uid: number; gid: number }> {
  const owner = await ownerOf(dataDir);
  if (owner !== null && owner.uid !== 0) return owner;
  const { uid, gid } = passwd.find(({ name }) => name === 'postgres') ?? { uid: NOBODY_ID, gid: NOBODY_ID };
  return { uid, gid };
}

async function requireNamespace(
  paths: OsUserPaths,
  osUser: OsUser,
  failedSwitch: { inaccessiblePath: string; uid: number } | null,
): Promise<OsUser> {
  const result = await probe(osUser, foldersToTraverse(paths), paths.programs.postgresPath);
  if (result.kind === 'open') return osUser;
  if (result.kind === 'closed') throw folderInaccessibleError(paths, result.path, 0);
  const why =
    failedSwitch === null
      ? `The database files in ${paths.clusterDir} belong to root`
      : `The folder ${failedSwitch.inaccessiblePath} is closed to the user with uid ${failedSwitch.uid}`;
  throw new EmbeddedError(
    failedSwitch === null ? 'namespace-refused' : 'folder-closed',
    `${why}, PostgreSQL refuses to run as root, and this system does not allow a user namespace (${result.reason}). ` +
      `Start Klatch as a user other than root, or set ${configKeyForPath(paths, failedSwitch?.inaccessiblePath ?? paths.clusterDir)} to a folder ` +
      'that every user can pass through.',
  );
}

async function findInaccessiblePath(osUser: OsUser, paths: OsUserPaths): Promise<string | null> {
  const result = await probe(osUser, foldersToTraverse(paths), paths.programs.postgresPath);
  if (result.kind === 'open') return null;
  return result.kind === 'closed' ? result.path : paths.programs.postgresPath;
}

type AccessProbeResult =
  | { readonly kind: 'open' }
  | { readonly kind: 'closed'; readonly path: string }
  | { readonly kind: 'refused'; readonly reason: string };

/**
 * This shell script runs as the user to check. It enters each folder and runs the program, if one is given: this tests
 * real access instead of modes.
 */
const ACCESS_PROBE_SCRIPT = `
program=$1; shift
for folder do cd "$folder" 2>/dev/null || { printf %s "$folder"; exit 3; }; done
test -n "$program" || exit 0
test -x "$program" || { printf %s "$program"; exit 3; }
cd / && "$program" --version >/dev/null || { printf %s "$program"; exit 3; }`;

async function probe(osUser: OsUser, folders: readonly string[], program: string): Promise<AccessProbeResult> {
  try {
    const command = commandAs(osUser, '/bin/sh', ['-c', ACCESS_PROBE_SCRIPT, 'sh', program, ...folders]);
    const { exitCode: code, stdout, stderr } = await runProgram(command, ACCESS_PROBE_TIMEOUT_MS);
    if (code === 0) return { kind: 'open' };
    if (code === 3) return { kind: 'closed', path: stdout };
    return { kind: 'refused', reason: lastLines(stderr, 1) || `exit code ${code}` };
  } catch (error) {
    // `unshare` is missing, or the kernel refuses to switch the user.
    return { kind: 'refused', reason: (error as Error).message };
  }
}

function foldersToTraverse({ dataDir, programs }: OsUserPaths): string[] {
  return [...folderWithAncestors(dataDir), ...folderWithAncestors(programs.binDir)];
}

/** A folder and all its ancestors, the topmost first. */
function folderWithAncestors(folder: string): string[] {
  const above = dirname(folder);
  return above === folder ? [folder] : [...folderWithAncestors(above), folder];
}

function configKeyForPath(paths: OsUserPaths, path: string): string {
  return folderWithAncestors(paths.dataDir).includes(path) || path === paths.clusterDir
    ? 'data-dir'
    : 'services.postgresql.bin-dir';
}

function folderInaccessibleError(paths: OsUserPaths, path: string, uid: number): EmbeddedError {
  const who = uid === 0 ? 'root without privileges (PostgreSQL refuses to run with them)' : `the user with uid ${uid}`;
  return new EmbeddedError(
    'folder-closed',
    `PostgreSQL has to run as ${who}, to whom ${path} is closed. Open it for passing through (chmod a+x), ` +
      `or set ${configKeyForPath(paths, path)} to another folder.`,
  );
}

function ownerMismatchError(paths: OsUserPaths, owner: number, uid: number): EmbeddedError {
  return new EmbeddedError(
    'owner-mismatch',
    `The database files in ${paths.clusterDir} belong to the user with uid ${owner}, but Klatch runs with uid ${uid}. ` +
      'Start Klatch as that user or as root, or set data-dir to another folder.',
  );
}

async function ownerOf(path: string): Promise<{ uid: number; gid: number } | null> {
  try {
    const { uid, gid } = await stat(path);
    return { uid, gid };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/**
 * initdb stops at a uid without a name ("could not look up effective user ID"). So the uid is the first of these with a
 * name in `passwd`: 1000, that of nobody, any other but 0. Without any it is 1000.
 */
function namedNamespaceUid(passwd: readonly PasswdEntry[]): number {
  const named = passwd.map(({ uid }) => uid).filter((uid) => uid !== 0);
  return [1000, NOBODY_ID].find((uid) => named.includes(uid)) ?? named[0] ?? 1000;
}
