import { isUtf8 } from 'node:buffer';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { fail } from './error.ts';
import type { Origin } from './value.ts';

/** The content of a text file. */
interface TextFile {
  readonly text: string;
  readonly bytes: number;
  /** The device and inode numbers: the same for all paths to one file. */
  readonly identity: string;
}

const REASON_BY_ERRNO: ReadonlyMap<string, string> = new Map([
  ['EACCES', 'permission is denied'],
  ['ELOOP', 'its symbolic links lead in a circle'],
  ['ENAMETOOLONG', 'the name is too long'],
]);

/** Reads a regular file of at most `maxBytes`; null if there is none. Other failures throw a HoconError at `origin`. */
export function readTextFile(path: string, maxBytes: number, origin: Origin): TextFile | null {
  let descriptor: number;
  try {
    // Without O_NONBLOCK, opening a named pipe waits for a writer for ever.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    return fail(origin, `Cannot read ${path}: ${REASON_BY_ERRNO.get(code) ?? 'it cannot be opened'} (${code}).`);
  }
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile())
      fail(origin, `Cannot read ${path}: it is ${stat.isDirectory() ? 'a folder' : 'not a regular file'}.`);
    const bytes = readAllBounded(descriptor, path, maxBytes, origin);
    return { text: decodeUtf8OrFail(bytes, path), bytes: bytes.length, identity: `${stat.dev}:${stat.ino}` };
  } finally {
    closeSync(descriptor);
  }
}

/** Counts the bytes while it reads a file, since the size that `fstat` reports may be wrong (as in `/proc`). */
function readAllBounded(descriptor: number, path: string, maxBytes: number, origin: Origin): Buffer {
  const chunks: Buffer[] = [];
  for (let total = 0; ;) {
    const chunk = Buffer.alloc(Math.min(65_536, maxBytes - total + 1));
    const count = readSync(descriptor, chunk);
    if (count === 0) return Buffer.concat(chunks);
    total += count;
    if (total > maxBytes)
      fail(origin, `Cannot read ${path}: it is larger than the ${maxBytes} bytes that are left for it.`);
    chunks.push(chunk.subarray(0, count));
  }
}

function decodeUtf8OrFail(bytes: Buffer, path: string): string {
  if (isUtf8(bytes)) return bytes.toString('utf8');
  // In UTF-8, the byte of a line end is never part of another character, so lines can be checked one by one.
  let line = 1;
  for (let start = 0; ; line++) {
    const next = bytes.indexOf(0x0a, start);
    const end = next < 0 ? bytes.length : next;
    const part = bytes.subarray(start, end);
    if (!isUtf8(part)) {
      const column = part.toString('utf8').indexOf('\uFFFD') + 1;
      return fail({ file: path, line, column }, 'Found bytes that are not UTF-8; save the file in the encoding UTF-8.');
    }
    start = end + 1;
  }
}

/** Does not use `instanceof`, which fails for an error of another realm, such as that of a test or a worker. */
function errorCodeOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : String(error);
}
