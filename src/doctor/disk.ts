import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { error, ok, warning, type CheckResult } from './finding.ts';

const MIB = 1024 * 1024;
/** With fewer free bytes, PostgreSQL may stop at the next checkpoint: it keeps up to 256 MiB of its WAL. */
export const FREE_BYTES_ERROR_BELOW = 512 * MIB;
/** With fewer free bytes the check warns: there is still time to act, but not much. */
export const FREE_BYTES_WARNING_BELOW = 4 * 1024 * MIB;
/**
 * With fewer free files than these, the check reports an error or a warning. A table takes a file for each GiB and
 * index; logs and sockets take some more.
 */
export const FREE_FILES_ERROR_BELOW = 1_000;
export const FREE_FILES_WARNING_BELOW = 10_000;

const TODO = 'Make room, or move the folder to a larger file system: a full disk refuses every message.';

interface FreeSpace {
  readonly path: string;
  /** The device number of the file system. */
  readonly device: number;
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** Null: the file system has no fixed number of files. */
  readonly freeFiles: number | null;
}

/** Checks the file systems of these folders, each file system once. */
export async function checkDiskSpace(folders: readonly string[]): Promise<CheckResult[]> {
  const freeSpaces = await Promise.all(folders.map(measureFreeSpace));
  const firstOnSameDevice = (freeSpace: FreeSpace): FreeSpace | undefined =>
    freeSpaces.find(({ device }) => device === freeSpace.device);
  return freeSpaces.filter((freeSpace) => firstOnSameDevice(freeSpace) === freeSpace).map(evaluateFreeSpace);
}

/** Whether a file system has enough free space. The scarcer one of bytes and files determines the level. */
export function evaluateFreeSpace({ path, freeBytes, totalBytes: bytes, freeFiles }: FreeSpace): CheckResult {
  const freePercent = bytes === 0 ? 0 : Math.round((freeBytes / bytes) * 100);
  const freeFilesText = freeFiles === null ? '' : `, room for ${freeFiles} files`;
  const found = `${path}: ${formatBytes(freeBytes)} free (${freePercent} %)${freeFilesText}`;
  const freeFilesOrInfinity = freeFiles ?? Number.POSITIVE_INFINITY;
  if (freeBytes < FREE_BYTES_ERROR_BELOW || freeFilesOrInfinity < FREE_FILES_ERROR_BELOW) return error(found, TODO);
  return freeBytes < FREE_BYTES_WARNING_BELOW || freeFilesOrInfinity < FREE_FILES_WARNING_BELOW
    ? warning(found, TODO)
    : ok(found);
}

/**
 * Measures the file system of a folder, or of its nearest ancestor that exists: the first start makes missing folders.
 */
async function measureFreeSpace(path: string): Promise<FreeSpace> {
  try {
    const { bsize, bavail, blocks, files, ffree } = await statfs(path);
    const { dev: device } = await stat(path);
    return {
      path,
      device,
      freeBytes: bavail * bsize,
      totalBytes: blocks * bsize,
      freeFiles: files === 0 ? null : ffree,
    };
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if ((code !== 'ENOENT' && code !== 'ENOTDIR') || dirname(path) === path) throw cause;
    return measureFreeSpace(dirname(path));
  }
}

/** A number of bytes for people, such as `1.5 GiB`. */
export function formatBytes(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)));
  const value = bytes / 1024 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[power]}`;
}
