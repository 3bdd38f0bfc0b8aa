import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  lutimesSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

/** A folder with the files of a package at their future paths. It sets the modes of files, whatever the umask. */
export class Stage {
  readonly #root: string;

  /** Empties `root`, or creates it. */
  constructor(root: string) {
    this.#root = root;
    rmSync(root, { recursive: true, force: true });
    mkdirSync(root, { recursive: true, mode: 0o755 });
  }

  get root(): string {
    return this.#root;
  }

  /** The path on this machine of a path in the package. */
  at(path: string): string {
    return join(this.#root, path);
  }

  folder(path: string): void {
    mkdirSync(this.at(path), { recursive: true, mode: 0o755 });
  }

  /** Copies a file, or a folder with its contents; `mode` is for a file. */
  copy(from: string, path: string, mode = 0o644): void {
    this.folder(dirname(path));
    cpSync(from, this.at(path), { recursive: true, verbatimSymlinks: true });
    if (lstatSync(from).isFile()) chmodSync(this.at(path), mode);
  }

  write(path: string, content: string | Buffer, mode = 0o644): void {
    this.folder(dirname(path));
    writeFileSync(this.at(path), content);
    chmodSync(this.at(path), mode);
  }

  /** Writes a file compressed, without the name and the date that gzip would store. */
  writePacked(path: string, content: string | Buffer): void {
    this.write(path, gzipSync(content, { level: 9 }));
  }

  link(path: string, target: string): void {
    this.folder(dirname(path));
    symlinkSync(target, this.at(path));
  }

  /** All files and links, as paths of the package without a leading slash, sorted. */
  files(): string[] {
    return readdirSync(this.#root, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name).slice(this.#root.length + 1))
      .sort();
  }

  /** All entries, sorted. Each folder has a slash at the end of its name, and comes before its contents. */
  entries(): string[] {
    return readdirSync(this.#root, { recursive: true, withFileTypes: true })
      .map(
        (entry) => join(entry.parentPath, entry.name).slice(this.#root.length + 1) + (entry.isDirectory() ? '/' : ''),
      )
      .sort();
  }

  /** The output of `md5sum` for the files, with which dpkg checks an installation. */
  md5sums(): string {
    const files = this.files().filter((file) => lstatSync(this.at(file)).isFile() && !file.startsWith('DEBIAN/'));
    const line = (file: string): string => {
      const sum = createHash('md5').update(readFileSync(this.at(file)));
      return `${sum.digest('hex')}  ${file}\n`;
    };
    return files.map(line).join('');
  }

  /** The installed size in KiB, as dpkg computes it: each file rounded up, and 1 for a folder or a link. */
  installedKib(): number {
    const entries = readdirSync(this.#root, { recursive: true, withFileTypes: true });
    const sizes = entries.map((entry) =>
      entry.isFile() ? Math.ceil(lstatSync(join(entry.parentPath, entry.name)).size / 1024) : 1,
    );
    return sizes.reduce((sum, size) => sum + size, 0);
  }

  /**
   * Sets the date of everything, links and folders too, in seconds since 1970. Call it last, since every change sets a
   * new date.
   */
  date(epoch: number): void {
    const below = readdirSync(this.#root, { recursive: true }) as string[];
    for (const path of [...below.sort().reverse(), '.']) lutimesSync(join(this.#root, path), epoch, epoch);
  }

  /** Gives folders and plain files the modes of a package, whatever the builder's umask; programs stay executable. */
  settleModes(): void {
    for (const entry of readdirSync(this.#root, { recursive: true, withFileTypes: true })) {
      if (entry.isSymbolicLink()) continue;
      const path = join(entry.parentPath, entry.name);
      const isProgram = entry.isDirectory() || (lstatSync(path).mode & 0o100) !== 0;
      chmodSync(path, isProgram ? 0o755 : 0o644);
    }
  }
}
