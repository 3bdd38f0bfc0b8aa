import { createHash } from 'node:crypto';
import { mkdir, realpath } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';

/** How long the holder of a lock may take to say who it is; it cannot answer while its event loop is blocked. */
const ANSWER_TIMEOUT_MS = 500;
/** A pid has at most seven digits on Linux; more than this is not an answer of ours. */
const ANSWER_MAX_BYTES = 32;
/** Askers served at a time. The lock's name is open to every local user, so their number must have an end. */
const MAX_ASKERS = 8;

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

/**
 * Says "one Klatch process per data directory". It is an abstract Unix socket named after the directory's real path:
 * binding the name is atomic, a second bind fails at once, and the kernel frees it with the process, however that dies,
 * so there is no stale lock file to judge. Abstract names belong to a network namespace: two containers that share a
 * directory do not see each other's lock.
 */
export class DataDirLock {
  readonly #server: Server;
  #released: Promise<void> | null = null;

  private constructor(server: Server) {
    this.#server = server;
  }

  /**
   * Takes the lock of a data directory, which is made when it is missing. Rejects with DataDirLockedError when another
   * process (or this one) holds it, and with the system's error when the directory cannot be made or the socket bound.
   * The lock alone does not keep the process alive.
   */
  static async acquire(dataDir: string): Promise<DataDirLock> {
    const path = await openDataDir(dataDir);
    const name = lockName(path);
    try {
      return new DataDirLock(await bind(name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
      const pid = (await askHolder(name))?.pid ?? null;
      const holder = pid === null ? 'another Klatch process' : `another Klatch process (pid ${pid})`;
      throw new DataDirLockedError(
        `The data directory ${path} is in use by ${holder}. Stop that process, or set data-dir to another folder.`,
        { cause: error },
      );
    }
  }

  /** Frees the lock. Idempotent. */
  async release(): Promise<void> {
    this.#released ??= new Promise((resolve) => {
      // The only error is "not running", which is what was asked for.
      this.#server.close(() => resolve());
    });
    return this.#released;
  }
}

/** The process that holds the lock of a data directory; its `pid` is null when it does not tell in time. */
export interface LockHolder {
  readonly pid: number | null;
}

/** Who holds the lock of a data directory, or null: nobody does. It takes no lock and makes nothing. */
export async function findHolder(dataDir: string): Promise<LockHolder | null> {
  try {
    return await askHolder(lockName(await realpath(dataDir)));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw error;
  }
}

/** 72 bytes whatever the path's length; an abstract name holds 107. */
function lockName(path: string): string {
  return `\0klatch:${createHash('sha256').update(path).digest('hex')}`;
}

async function bind(name: string): Promise<Server> {
  const server = createServer((socket) => {
    // An asker that is gone before it has read its answer is no concern of the holder.
    socket.on('error', () => socket.destroy());
    socket.end(`${process.pid}\n`, () => socket.destroy());
  });
  server.maxConnections = MAX_ASKERS;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    // `exclusive`: a worker of node:cluster must bind by itself and not be handed the primary's socket.
    server.listen({ path: name, exclusive: true }, resolve);
  });
  server.removeAllListeners('error');
  // A failed accept (no file descriptor left) costs one asker its answer; the name stays bound.
  server.on('error', () => {});
  server.unref();
  return server;
}

/** Null when the name is free, also when its holder has died just now: then nobody is left to name. */
async function askHolder(name: string): Promise<LockHolder | null> {
  return new Promise((resolve) => {
    let answer = '';
    let isFree = false;
    const socket = connect({ path: name });
    const timer = setTimeout(() => socket.destroy(), ANSWER_TIMEOUT_MS);
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      answer += chunk;
      if (answer.length > ANSWER_MAX_BYTES) socket.destroy();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // Any other error (too many askers) comes from a socket that somebody has bound.
      isFree = error.code === 'ECONNREFUSED';
    });
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(isFree ? null : { pid: /^\d{1,10}\n$/.test(answer) ? Number(answer) : null });
    });
  });
}
