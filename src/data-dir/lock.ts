import { accessSync, closeSync, constants, fchownSync, lstatSync, openSync, readFileSync, statSync } from 'node:fs';
import { mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { describeUser } from './passwd.ts';

const LOCK_FILE = 'klatch.lock';
/** Processes that ask in the same instant refuse each other while each has a part of the lock: they ask again for so long. */
const CONTENTION_MS = 2_000;
const ASK_AGAIN_MS = 10;
const SQLITE_BUSY = 5;
/** The bytes that an exclusive lock of SQLite covers, see "PENDING_BYTE" in its sources. */
const LOCKED_BYTES = '1073741824 1073742335';

/** Another living process holds the lock. The message is a sentence for the person who started this one. */
export class DataDirLockedError extends Error {
  override readonly name = 'DataDirLockedError';
}

/** The data directory cannot be made or reached. The message is a sentence for the person who started this. */
export class DataDirError extends Error {
  override readonly name = 'DataDirError';
}

/**
 * Makes the data directory when it is missing and resolves with its real path. As root it can be passed through (0711)
 * but not listed, since PostgreSQL, which refuses to run as root, has to reach its own folder inside; else it is 0700.
 */
export async function openDataDir(dataDir: string): Promise<string> {
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

/** Locks that this process holds; a connection that is collected as garbage would free its lock. */
const held = new Set<DatabaseSync>();

/**
 * Says "one Klatch process per data directory". It is a record lock of the kernel on an empty file in the directory,
 * mode 0600: no other user can take it. The kernel frees it with the process, however that dies, so there is no stale
 * lock to judge, and containers that share the directory see it. Node has no call for it; the SQLite inside Node has.
 */
export class DataDirLock {
  readonly #connection: DatabaseSync;

  private constructor(connection: DatabaseSync) {
    this.#connection = connection;
    held.add(connection);
  }

  /**
   * Takes the lock of a data directory, which is made when it is missing. Rejects with DataDirLockedError when another
   * process (or this one) holds it, and with DataDirError when the directory or the lock's file cannot be used. The lock
   * alone does not keep the process alive.
   */
  static async acquire(dataDir: string): Promise<DataDirLock> {
    const path = await openDataDir(dataDir);
    const file = join(path, LOCK_FILE);
    requireLockFile(file, path);
    const until = performance.now() + CONTENTION_MS;
    for (;;) {
      const connection = tryLock(file, 'begin exclusive');
      if (connection !== null) return new DataDirLock(connection);
      const holder = holderOf(file);
      if (holder.pid !== null || performance.now() >= until) throw refusal(path, holder);
      await setTimeout(ASK_AGAIN_MS);
    }
  }

  /** Frees the lock. Idempotent. */
  async release(): Promise<void> {
    if (held.delete(this.#connection)) this.#connection.close();
  }
}

/** The process that holds the lock of a data directory; null: not known, as for one in another container. */
export interface LockHolder {
  readonly pid: number | null;
  /** Whom it runs as. */
  readonly uid: number | null;
}

/** Who holds the lock of a data directory, or null: nobody does. It makes nothing, and it delays no one who takes it. */
export async function findHolder(dataDir: string): Promise<LockHolder | null> {
  try {
    const file = join(await realpath(dataDir), LOCK_FILE);
    if (!lstatSync(file).isFile()) return null;
    const connection = tryLock(file, 'begin; select * from sqlite_master', { readOnly: true });
    connection?.close();
    return connection === null ? holderOf(file) : null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw error;
  }
}

/** Makes the lock's file where it is missing, for the owner of the directory, who has to open it at the next start. */
function requireLockFile(file: string, folder: string): void {
  const owner = statSync(folder);
  const uid = process.geteuid?.() ?? owner.uid;
  try {
    makeLockFile(file, uid === 0 ? owner : null);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw unusable(file, cause);
  }
  const found = lstatSync(file);
  // In a directory that others write to, theirs would be a lock that they hold.
  if (!found.isFile() || ![0, uid, owner.uid].includes(found.uid)) {
    const what = found.isFile() ? `belongs to ${describeUser(found.uid)}` : 'is not a file';
    throw new DataDirError(`${file} ${what}. Remove it, and let nobody else write to ${folder} (chmod go-w).`);
  }
  try {
    // Not by opening it: closing any descriptor of a file ends the record locks that this process has on it.
    accessSync(file, constants.R_OK | constants.W_OK);
  } catch (cause) {
    throw unusable(file, cause);
  }
}

function makeLockFile(file: string, owner: { readonly uid: number; readonly gid: number } | null): void {
  const descriptor = openSync(file, 'wx', 0o600);
  try {
    if (owner !== null) fchownSync(descriptor, owner.uid, owner.gid);
  } finally {
    closeSync(descriptor);
  }
}

function unusable(file: string, cause: unknown): DataDirError {
  const why = (cause as NodeJS.ErrnoException).code ?? (cause as Error).message;
  const todo = 'It has to belong to the user that runs Klatch, on a local disk';
  return new DataDirError(`The lock ${file} cannot be used (${why}). ${todo}.`, { cause });
}

/** The connection that has the lock now; null: another one has it. Throws DataDirError. */
function tryLock(file: string, statement: string, { readOnly = false } = {}): DatabaseSync | null {
  // Loaded here: most commands take no lock.
  const { DatabaseSync: Connection } = process.getBuiltinModule('node:sqlite');
  let connection: DatabaseSync | null = null;
  try {
    connection = new Connection(file, { readOnly });
    connection.exec(statement);
    return connection;
  } catch (error) {
    connection?.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return null;
    throw unusable(file, error);
  }
}

/** What the kernel says of a lock that is held. */
function holderOf(file: string): LockHolder {
  const pid = pidOf(file);
  return { pid, uid: pid === null ? null : uidOf(pid) };
}

/** By the number of the file alone: on btrfs and overlayfs the kernel names another device than `stat` does. */
function pidOf(file: string): number | null {
  const { ino } = lstatSync(file);
  const pattern = new RegExp(`^\\d+: POSIX +ADVISORY +WRITE (\\d+) \\w+:\\w+:${ino} ${LOCKED_BYTES}$`, 'm');
  const pid = Number(pattern.exec(readProc('/proc/locks'))?.[1] ?? 0);
  return pid > 0 ? pid : null;
}

function uidOf(pid: number): number | null {
  const uid = /^Uid:\s+\d+\s+(\d+)/m.exec(readProc(`/proc/${pid}/status`))?.[1];
  return uid === undefined ? null : Number(uid);
}

/** Empty where there is no such file: no /proc at all, or the process has ended. */
function readProc(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function refusal(path: string, holder: LockHolder): DataDirLockedError {
  const what = `The data directory ${path} is in use by another Klatch process${describeHolder(holder)}`;
  return new DataDirLockedError(`${what}. Stop that process, or set data-dir to another folder.`);
}

function describeHolder({ pid, uid }: LockHolder): string {
  if (pid === null) return '';
  return uid === null ? ` (pid ${pid})` : ` (pid ${pid}, ${describeUser(uid)})`;
}
