import { existsSync, fstatSync, lstatSync } from 'node:fs';
import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Writable } from 'node:stream';
import { callbackify } from 'node:util';
import { syncFolder } from '../../config/durable-file.ts';
import { BackupError } from './format.ts';

/**
 * Gives a partial file its final name, or removes it. It may have rights that the process that writes the file lacks.
 */
export interface PartialFileFinalizer {
  /**
   * Gives the partial file its final name. Rejects with BackupError if another process has replaced the partial file,
   * or if a file with the final name exists and must not be overwritten.
   */
  giveFinalName(): Promise<void>;
  /** Removes the partial file, unless another process has replaced it meanwhile. */
  remove(): Promise<void>;
}

interface PartialFileOptions {
  readonly overwrite: boolean;
  /** Creates the finalizer for the file with this descriptor; by default this process finalizes it. */
  readonly createPrivilegedFinalizer?: (descriptor: number) => PartialFileFinalizer;
}

/**
 * A file that gets its name only when it is complete and on disk. Until then its name is `<name>.partial`, and only its
 * owner can read it. A process that is killed leaves the partial file, and the next backup to the same name replaces
 * it.
 */
export class PartialFile {
  readonly #handle: FileHandle;
  readonly #finalizer: PartialFileFinalizer;
  #isNamed = false;

  private constructor(handle: FileHandle, finalizer: PartialFileFinalizer) {
    this.#handle = handle;
    this.#finalizer = finalizer;
  }

  /**
   * Creates the partial file of `path`. Rejects with BackupError if `path` exists and must not be overwritten, and with
   * the system's errors.
   */
  static async create(
    path: string,
    { overwrite, createPrivilegedFinalizer }: PartialFileOptions,
  ): Promise<PartialFile> {
    refuseExisting(path, overwrite);
    await rm(partialPath(path), { force: true });
    const handle = await open(partialPath(path), 'wx', 0o600);
    return new PartialFile(
      handle,
      createPrivilegedFinalizer?.(handle.fd) ?? inProcessFinalizer(handle.fd, { path, overwrite }),
    );
  }

  /**
   * A stream that writes into the file. The file stream of Node.js would close the file on an error, and `discard`
   * still has to check the file.
   */
  stream(): Writable {
    const write = callbackify((chunk: Buffer) => this.#write(chunk));
    return new Writable({ write: (chunk: Buffer, _, done) => write(chunk, done) });
  }

  /** Gives the file its final name, once its content is on disk. */
  async finish(): Promise<void> {
    await this.#handle.sync();
    await this.#finalizer.giveFinalName();
    this.#isNamed = true;
    await this.#handle.close();
  }

  /** Removes the partial file, unless it has its final name already, or another process has replaced it meanwhile. */
  async discard(): Promise<void> {
    if (this.#isNamed) return;
    await this.#finalizer.remove();
    await this.#handle.close();
  }

  async #write(chunk: Buffer): Promise<void> {
    for (let offset = 0; offset < chunk.length;) offset += (await this.#handle.write(chunk, offset)).bytesWritten;
  }
}

/** Finalizes the open file of a descriptor with the rights of this process. */
export function inProcessFinalizer(
  descriptor: number,
  { path, overwrite }: { path: string; overwrite: boolean },
): PartialFileFinalizer {
  const partial = partialPath(path);
  const isPartialFileOurs = (): boolean => {
    const [ours, named] = [fstatSync(descriptor), lstatSync(partial, { throwIfNoEntry: false })];
    return named !== undefined && ours.ino === named.ino && ours.dev === named.dev;
  };
  return {
    giveFinalName: async () => {
      if (!isPartialFileOurs()) throw new BackupError(`Another process writes ${partial}: this backup was given up.`);
      refuseExisting(path, overwrite);
      await rename(partial, path);
      syncFolder(dirname(path));
    },
    remove: async () => {
      if (isPartialFileOurs()) await rm(partial, { force: true });
    },
  };
}

function partialPath(path: string): string {
  return `${path}.partial`;
}

function refuseExisting(path: string, overwrite: boolean): void {
  if (!existsSync(path)) return;
  // A rename would replace a device or a pipe by the backup.
  if (!lstatSync(path).isFile()) throw new BackupError(`${path} is no file: to write into a pipe, give - instead.`);
  if (!overwrite) throw new BackupError(`${path} is there already: give another name, or --force to overwrite it.`);
}
