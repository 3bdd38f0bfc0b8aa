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
 * Writes the configuration so that at every instant the old or the new file is there whole: beside it, synced, then
 * renamed. Mode 0640 (or stricter, if the old file was); the old file's owner is kept unless `owner` is given, since
 * root runs the set-up and the server's group has to read the result. A symbolic link stays one.
 */
export function writeConfig(path: string, text: string, options: { readonly owner?: Owner } = {}): void {
  const old = statSync(path, { throwIfNoEntry: false });
  const target = old === undefined ? path : realpathSync(path);
  const owner = options.owner ?? (old === undefined ? undefined : { uid: old.uid, gid: old.gid });
  const mode = old === undefined ? 0o640 : old.mode & 0o640;
  const beside = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString('hex')}`);
  writeNewFile(beside, text, owner === undefined ? { mode } : { mode, owner });
  try {
    renameSync(beside, target);
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  }
  syncFolder(dirname(target));
}
