import { accessSync, closeSync, constants, fchownSync, lstatSync, openSync, readFileSync, statSync } from 'node:fs';
import { mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { describeUser } from './passwd.ts';

const LOCK_FILE = 'klatch.lock';
/**
 * Processes that lock in the same instant can each get a part of the lock and refuse each other. They retry for at most
 * this long.
 */
const ACQUIRE_RACE_TIMEOUT_MS = 2_000;
const LOCK_RETRY_MS = 10;
const SQLITE_BUSY = 5;
/**
 * The bytes that an exclusive lock of SQLite covers (see "PENDING_BYTE" in its sources), as /proc/locks writes them.
 */
const LOCKED_BYTE_RANGE = '1073741824 1073742335';

/** Another running process holds the lock. The message is a sentence for the person who started this process. */
export class DataDirLockedError extends Error {
  override readonly name = 'DataDirLockedError';
}

/** The data directory cannot be made or reached. The message is a sentence for the person who started this process. */
export class DataDirError extends Error {
  override readonly name = 'DataDirError';
}

/**
 * Makes the data directory when it is missing and resolves with its real path. Its mode is 0700. If root makes it, the
 * mode is 0711: PostgreSQL, which refuses to run as root, has to reach its own folder inside.
 */
export async function ensureDataDir(dataDir: string): Promise<string> {
  try {
    await mkdir(dataDir, { recursive: true, mode: process.geteuid?.() === 0 ? 0o711 : 0o700 });
    return await realpath(dataDir);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new DataDirError(
      `The data directory ${dataDir} cannot be made or reached (${code}). Make it for the user that runs Klatch, or set data-dir in server.conf to another folder.`,
      { cause },
    );
  }
}

/**
 * Keeps a reference to each lock that this process holds: the garbage collection of a connection would free its lock.
 */
const heldConnections = new Set<DatabaseSync>();

/**
 * The lock that admits one Klatch process per data directory: a record lock of the kernel on an empty file in the
 * directory. The file has mode 0600, so that no other user can take the lock. The kernel frees the lock when the
 * process ends in any way: there are no stale locks. Containers that share the directory see the lock. Node has no call
 * for record locks; the SQLite inside Node has.
 */
export class DataDirLock {
  readonly #connection: DatabaseSync;

  private constructor(connection: DatabaseSync) {
    this.#connection = connection;
    heldConnections.add(connection);
  }

  /**
   * Takes the lock of a data directory, and makes the directory if it is missing. Rejects with DataDirLockedError when
   * another process (or this one) holds the lock, and with DataDirError when the directory or the lock's file cannot be
   * used. The lock alone does not keep the process alive.
   */
  static async acquire(dataDir: string): Promise<DataDirLock> {
    const path = await ensureDataDir(dataDir);
    const file = join(path, LOCK_FILE);
    createOrCheckLockFile(file, path);
    const until = performance.now() + ACQUIRE_RACE_TIMEOUT_MS;
    for (;;) {
      const connection = tryLock(file, 'begin exclusive');
      if (connection !== null) return new DataDirLock(connection);
      const holder = readLockHolder(file);
      if (holder.pid !== null || performance.now() >= until) throw lockedError(path, holder);
      await setTimeout(LOCK_RETRY_MS);
    }
  }

  /** Frees the lock. Idempotent. */
  async release(): Promise<void> {
    if (heldConnections.delete(this.#connection)) this.#connection.close();
  }
}

/**
 * The process that holds the lock of a data directory. Fields are null where they are unknown, as for a process in
 * another container.
 */
export interface LockHolder {
  readonly pid: number | null;
  /** The effective user id of the process. */
  readonly uid: number | null;
}

/**
 * Resolves to the holder of a data directory's lock; null: no process holds it. Creates no file, and does not delay a
 * process that takes the lock.
 */
export async function findLockHolder(dataDir: string): Promise<LockHolder | null> {
  try {
    const file = join(await realpath(dataDir), LOCK_FILE);
    if (!lstatSync(file).isFile()) return null;
    const connection = tryLock(file, 'begin; select * from sqlite_master', { readOnly: true });
    connection?.close();
    return connection === null ? readLockHolder(file) : null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw error;
  }
}

/**
 * Makes the lock's file if it is missing, and checks that this process may use it. Root gives the file to the owner of
 * the directory, who has to open it at the next start. Throws DataDirError.
 */
function createOrCheckLockFile(file: string, folder: string): void {
  const owner = statSync(folder);
  const uid = process.geteuid?.() ?? owner.uid;
  try {
    createLockFile(file, uid === 0 ? owner : null);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw lockFileError(file, cause);
  }
  const found = lstatSync(file);
  // If other users can write to the directory, one of them may have made the file, and could hold its lock.
  if (!found.isFile() || ![0, uid, owner.uid].includes(found.uid)) {
    const what = found.isFile() ? `belongs to ${describeUser(found.uid)}` : 'is not a file';
    throw new DataDirError(`${file} ${what}. Remove it, and let nobody else write to ${folder} (chmod go-w).`);
  }
  try {
    // This call does not open the file: closing any descriptor of a file ends the record locks that this process has on
    // it.
    accessSync(file, constants.R_OK | constants.W_OK);
  } catch (cause) {
    throw lockFileError(file, cause);
  }
}

function createLockFile(file: string, owner: { readonly uid: number; readonly gid: number } | null): void {
  const descriptor = openSync(file, 'wx', 0o600);
  try {
    if (owner !== null) fchownSync(descriptor, owner.uid, owner.gid);
  } finally {
    closeSync(descriptor);
  }
}

function lockFileError(file: string, cause: unknown): DataDirError {
  const why = (cause as NodeJS.ErrnoException).code ?? (cause as Error).message;
  const todo = 'It has to belong to the user that runs Klatch, on a local disk';
  return new DataDirError(`The lock ${file} cannot be used (${why}). ${todo}.`, { cause });
}

/** Returns a connection that holds the lock; null: another connection holds it. Throws DataDirError. */
function tryLock(file: string, statement: string, { readOnly = false } = {}): DatabaseSync | null {
  // The module node:sqlite is loaded only here, since most commands take no lock.
  const { DatabaseSync: Connection } = process.getBuiltinModule('node:sqlite');
  let connection: DatabaseSync | null = null;
  try {
    connection = new Connection(file, { readOnly });
    connection.exec(statement);
    return connection;
  } catch (error) {
    connection?.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return null;
    throw lockFileError(file, error);
  }
}

/** The process that holds the lock, according to /proc. Call it only while a process holds the lock. */
function readLockHolder(file: string): LockHolder {
  const pid = lockingPid(file);
  return { pid, uid: pid === null ? null : effectiveUidOf(pid) };
}

/**
 * The process that holds the lock; null: unknown. Only the inode of the lock's file is compared: on btrfs and
 * overlayfs, /proc/locks names another device than `stat`.
 */
function lockingPid(file: string): number | null {
  const { ino } = lstatSync(file);
  const pattern = new RegExp(`^\\d+: POSIX +ADVISORY +WRITE (\\d+) \\w+:\\w+:${ino} ${LOCKED_BYTE_RANGE}$`, 'm');
  const pid = Number(pattern.exec(readProcFile('/proc/locks'))?.[1] ?? 0);
  return pid > 0 ? pid : null;
}

function effectiveUidOf(pid: number): number | null {
  const uid = /^Uid:\s+\d+\s+(\d+)/m.exec(readProcFile(`/proc/${pid}/status`))?.[1];
  return uid === undefined ? null : Number(uid);
}

/** The text of a file in /proc; empty if the file cannot be read: there is no /proc, or the process has ended. */
function readProcFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function lockedError(path: string, holder: LockHolder): DataDirLockedError {
  const what = `The data directory ${path} is in use by another Klatch process${describeLockHolder(holder)}`;
  return new DataDirLockedError(`${what}. Stop that process, or set data-dir to another folder.`);
}

function describeLockHolder({ pid, uid }: LockHolder): string {
  if (pid === null) return '';
  return uid === null ? ` (pid ${pid})` : ` (pid ${pid}, ${describeUser(uid)})`;
}
