import { existsSync, fstatSync, lstatSync } from 'node:fs';
import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Writable } from 'node:stream';
import { callbackify } from 'node:util';
import { syncFolder } from '../../config/durable-file.ts';
import { BackupError } from './format.ts';

/** Whoever has the rights to it gives a partial file its name, or removes it. */
export interface PartialFileFinalizer {
  /** Rejects with BackupError where another process writes the file by now, or one of that name must not be overwritten. */
  name(): Promise<void>;
  /** Removes the partial file, unless it is another process's by now. */
  remove(): Promise<void>;
}

interface CreateOptions {
  readonly overwrite: boolean;
  /** Who names the file with this descriptor; by default this process. */
  readonly createPrivilegedFinalizer?: (descriptor: number) => PartialFileFinalizer;
}

/**
 * A file that gets its name when it is whole and on disk: until then it is `<name>.partial`, for its owner alone. A kill
 * leaves that, and the next backup into the same file takes its place.
 */
export class PartialFile {
  readonly #handle: FileHandle;
  readonly #finalizer: PartialFileFinalizer;
  #isNamed = false;

  private constructor(handle: FileHandle, finalizer: PartialFileFinalizer) {
    this.#handle = handle;
    this.#finalizer = finalizer;
  }

  /** Rejects with BackupError where the file is there already and must not be overwritten, and with the system's errors. */
  static async create(path: string, { overwrite, createPrivilegedFinalizer }: CreateOptions): Promise<PartialFile> {
    refuseExisting(path, overwrite);
    await rm(partialPath(path), { force: true });
    const handle = await open(partialPath(path), 'wx', 0o600);
    return new PartialFile(
      handle,
      createPrivilegedFinalizer?.(handle.fd) ?? inProcessFinalizer(handle.fd, { path, overwrite }),
    );
  }

  /** Not the system's own streams: one that fails closes the file, which we still have to look at. */
  stream(): Writable {
    const write = callbackify((chunk: Buffer) => this.#write(chunk));
    return new Writable({ write: (chunk: Buffer, _, done) => write(chunk, done) });
  }

  /** Gives it its name, durably. */
  async finish(): Promise<void> {
    await this.#handle.sync();
    await this.#finalizer.name();
    this.#isNamed = true;
    await this.#handle.close();
  }

  /** Removes what was written, unless it has its name, or is another process's by now. */
  async discard(): Promise<void> {
    if (this.#isNamed) return;
    await this.#finalizer.remove();
    await this.#handle.close();
  }

  async #write(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length;) at += (await this.#handle.write(chunk, at)).bytesWritten;
  }
}

/** Names the open file of a descriptor with the rights of this process. */
export function inProcessFinalizer(
  descriptor: number,
  { path, overwrite }: { path: string; overwrite: boolean },
): PartialFileFinalizer {
  const partial = partialPath(path);
  const isOurs = (): boolean => {
    const [ours, named] = [fstatSync(descriptor), lstatSync(partial, { throwIfNoEntry: false })];
    return named !== undefined && ours.ino === named.ino && ours.dev === named.dev;
  };
  return {
    name: async () => {
      if (!isOurs()) throw new BackupError(`Another process writes ${partial}: this backup was given up.`);
      refuseExisting(path, overwrite);
      await rename(partial, path);
      syncFolder(dirname(path));
    },
    remove: async () => {
      if (isOurs()) await rm(partial, { force: true });
    },
  };
}

function partialPath(path: string): string {
  return `${path}.partial`;
}

function refuseExisting(path: string, overwrite: boolean): void {
  if (!existsSync(path)) return;
  // A rename would put the backup in the place of a device or a pipe.
  if (!lstatSync(path).isFile()) throw new BackupError(`${path} is no file: to write into a pipe, give - instead.`);
  if (!overwrite) throw new BackupError(`${path} is there already: give another name, or --force to overwrite it.`);
}
