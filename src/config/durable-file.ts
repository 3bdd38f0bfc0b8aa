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

/** Ids of the user and group that a file is to belong to. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

interface NewFileOptions {
  readonly mode: number;
  readonly owner?: Owner;
}

/**
 * Writes a file that must not exist yet (EEXIST) and syncs its content. What could not be written to the end is
 * removed. The folder is not synced: see `syncFolder`.
 */
export function writeNewFile(path: string, content: string | Buffer, { mode, owner }: NewFileOptions): void {
  const descriptor = openSync(path, 'wx', 0o600);
  try {
    writeFileSync(descriptor, content);
    // The mode given to open() is cut by the umask.
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

/** Makes the folder's entries durable: without it a rename or a new file can be lost with the power. */
export function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Writes a file so that at every instant the old or the new one is there whole: beside it, synced, then renamed, and the
 * folder synced. Where a file is there already, `path` has to be its real path: a symbolic link would be replaced.
 */
export function replaceFile(path: string, content: string, options: NewFileOptions): void {
  const beside = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`);
  writeNewFile(beside, content, options);
  try {
    renameSync(beside, path);
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

/**
 * Replaces the configuration durably. Mode 0640 (or stricter, if the old file was); the old file's owner is kept unless
 * `owner` is given, since root runs the set-up and the server's group has to read the result. A symbolic link stays one.
 */
export function writeConfig(path: string, text: string, options: { readonly owner?: Owner } = {}): void {
  const old = statSync(path, { throwIfNoEntry: false });
  const target = old === undefined ? path : realpathSync(path);
  const owner = options.owner ?? (old === undefined ? undefined : { uid: old.uid, gid: old.gid });
  const mode = old === undefined ? 0o640 : old.mode & 0o640;
  replaceFile(target, text, owner === undefined ? { mode } : { mode, owner });
}
