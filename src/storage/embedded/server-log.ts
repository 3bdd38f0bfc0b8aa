import { constants } from 'node:fs';
import { open, rename, stat, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { lastLines } from './run-program.ts';

/** A log of more bytes is renamed to `postgresql.log.1` at a start, and replaces the previous file of that name. */
const ROTATE_ABOVE_BYTES = 8 * 1024 * 1024;
const TAIL_BYTES = 4096;
const TAIL_LINES = 10;

/** The log of the private server, opened for appending. */
export interface ServerLog {
  readonly path: string;
  readonly handle: FileHandle;
  /** The offset in bytes at which this start's lines begin. */
  readonly offset: number;
}

/** Opens `<dataDir>/postgresql.log` (mode 0600) and rejects if it is a symbolic link. The caller closes the handle. */
export async function openServerLog(dataDir: string): Promise<ServerLog> {
  const path = join(dataDir, 'postgresql.log');
  const handle = await openForAppendAndChown(path, dataDir);
  const { size } = await handle.stat();
  if (size <= ROTATE_ABOVE_BYTES) return { path, handle, offset: size };
  await handle.close();
  await rename(path, `${path}.1`);
  return { path, handle: await openForAppendAndChown(path, dataDir), offset: 0 };
}

/** The last lines of the log that were written since it was opened. */
export async function readLogTail(log: Pick<ServerLog, 'path' | 'offset'>): Promise<string> {
  const handle = await open(log.path, 'r');
  try {
    const { size } = await handle.stat();
    const from = Math.max(log.offset, size - TAIL_BYTES);
    const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(TAIL_BYTES), position: from });
    return lastLines(buffer.toString('utf8', 0, bytesRead), TAIL_LINES);
  } finally {
    await handle.close();
  }
}

async function openForAppendAndChown(path: string, dataDir: string): Promise<FileHandle> {
  const { O_WRONLY, O_APPEND, O_CREAT, O_NOFOLLOW } = constants;
  const handle = await open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600);
  try {
    // A backup that runs as root would create the file as root, and the server, another user, could no longer start.
    if (process.geteuid?.() === 0) {
      const { uid, gid } = await stat(dataDir);
      await handle.chown(uid, gid);
    }
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}
