import { existsSync, lstatSync } from 'node:fs';
import { lstat, open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Writable } from 'node:stream';
import { callbackify } from 'node:util';
import { syncFolder } from '../../config/durable-file.ts';
import { BackupError } from './format.ts';

/**
 * A file that gets its name when it is whole and on disk: until then it is `<name>.partial`, for its owner alone. A kill
 * leaves that, and the next backup into the same file takes its place.
 */
export class PartialFile {
  readonly #path: string;
  readonly #handle: FileHandle;
  readonly #overwrite: boolean;
  #isNamed = false;

  private constructor(path: string, handle: FileHandle, overwrite: boolean) {
    this.#path = path;
    this.#handle = handle;
    this.#overwrite = overwrite;
  }

  /** Rejects with BackupError where the file is there already and must not be overwritten, and with the system's errors. */
  static async create(path: string, { overwrite }: { readonly overwrite: boolean }): Promise<PartialFile> {
    refuseExisting(path, overwrite);
    await rm(partialPath(path), { force: true });
    return new PartialFile(path, await open(partialPath(path), 'wx', 0o600), overwrite);
  }

  /** Not the system's own streams: one that fails closes the file, which we still have to look at. */
  stream(): Writable {
    const write = callbackify((chunk: Buffer) => this.#write(chunk));
    return new Writable({ write: (chunk: Buffer, _, done) => write(chunk, done) });
  }

  /** Gives it its name, durably. */
  async finish(): Promise<void> {
    await this.#handle.sync();
    if (!(await this.#isOurs())) {
      throw new BackupError(`Another process writes ${partialPath(this.#path)}: this backup was given up.`);
    }
    refuseExisting(this.#path, this.#overwrite);
    await rename(partialPath(this.#path), this.#path);
    this.#isNamed = true;
    await this.#handle.close();
    syncFolder(dirname(this.#path));
  }

  /** Removes what was written, unless it has its name, or is another process's by now. */
  async discard(): Promise<void> {
    if (this.#isNamed) return;
    if (await this.#isOurs()) await rm(partialPath(this.#path), { force: true });
    await this.#handle.close();
  }

  async #write(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length;) at += (await this.#handle.write(chunk, at)).bytesWritten;
  }

  async #isOurs(): Promise<boolean> {
    const [ours, named] = await Promise.all([this.#handle.stat(), lstat(partialPath(this.#path)).catch(() => null)]);
    return named !== null && ours.ino === named.ino && ours.dev === named.dev;
  }
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
