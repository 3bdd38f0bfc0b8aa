import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** The ids of the user and the group that will own a file. */
export interface FileOwner {
  readonly uid: number;
  readonly gid: number;
}

interface NewFileOptions {
  readonly mode: number;
  readonly owner?: FileOwner;
}

/**
 * Writes a new file and syncs its content, but not its folder (see `syncFolder`). Throws EEXIST if the file exists.
 * Removes the file if it cannot be written completely.
 */
export function writeNewFile(path: string, content: string | Buffer, { mode, owner }: NewFileOptions): void {
  const descriptor = openSync(path, 'wx', 0o600);
  try {
    writeFileSync(descriptor, content);
    // fchmod is necessary, since the umask reduces the mode that open() sets.
    fchmodSync(descriptor, mode);
    const { uid, gid } = fstatSync(descriptor);
    if (owner !== undefined && (owner.uid !== uid || owner.gid !== gid)) fchownSync(descriptor, owner.uid, owner.gid);
    fsyncSync(descriptor);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
}

/** Syncs a folder. Otherwise a power failure can lose a renamed or new file in it. */
export function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Replaces a file so that at any time either the old or the new one exists completely. Writes and syncs a file beside
 * it, renames that file, and syncs the folder. If the file exists, `path` must be its real path, since a symbolic link
 * would be replaced.
 */
export function replaceFile(path: string, content: string, options: NewFileOptions): void {
  const temporaryPath = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`);
  writeNewFile(temporaryPath, content, options);
  try {
    renameSync(temporaryPath, path);
  } catch (error) {
    rmSync(temporaryPath, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

/**
 * Replaces the configuration durably, with mode 0640 or the stricter one of the old file. Follows a symbolic link.
 * Keeps the old file's owner unless `owner` is given: root may run the setup, and the server's group must be able to
 * read the file.
 */
export function writeConfig(path: string, text: string, options: { readonly owner?: FileOwner } = {}): void {
  const old = statSync(path, { throwIfNoEntry: false });
  const target = old === undefined ? path : realpathSync(path);
  const owner = options.owner ?? (old === undefined ? undefined : { uid: old.uid, gid: old.gid });
  const mode = old === undefined ? 0o640 : old.mode & 0o640;
  replaceFile(target, text, owner === undefined ? { mode } : { mode, owner });
}
