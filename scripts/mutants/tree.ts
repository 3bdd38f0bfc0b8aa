import {
  chmodSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import type { Mutant } from './mutant.ts';

const ROOT = join(import.meta.dirname, '../..');
const NOT_COPIED = ['.git', 'build', 'dist', 'node_modules', 'var'];

/** A copy of the source tree in a temporary folder, in which one mutant at a time is planted. */
export class MutantTree {
  readonly root: string;

  constructor() {
    this.root = mkdtempSync(join(realpathSync(tmpdir()), 'klatch-mutants-'));
    // mkdtemp creates the folder for its owner only, but some tests start the program as another user.
    chmodSync(this.root, 0o755);
    cpSync(ROOT, this.root, { recursive: true, filter: (path) => !NOT_COPIED.includes(relative(ROOT, path)) });
    symlinkSync(join(ROOT, 'node_modules'), join(this.root, 'node_modules'));
  }

  /** Edits the file of the mutant and returns the function that restores it. */
  plant(mutant: Mutant): () => void {
    const path = join(this.root, mutant.file);
    const before = readFileSync(path, 'utf8');
    writeFileSync(path, plantedText(mutant, this.root));
    return () => writeFileSync(path, before);
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

/**
 * The text of a mutant's file in this tree, with the fault in it. Throws when `find` does not occur exactly once, when
 * the edit changes nothing, and when the result does not parse.
 */
export function plantedText({ name, file, find, replace }: Mutant, root = ROOT): string {
  const pieces = readFileSync(join(root, file), 'utf8').split(find);
  if (pieces.length !== 2) {
    throw new Error(`${name}: the text to replace occurs ${pieces.length - 1} times in ${file}; it must occur once`);
  }
  if (find === replace) throw new Error(`${name}: the replacement equals the text that it replaces`);
  const text = pieces.join(replace);
  // A file that does not parse fails every test, which proves nothing about the promise.
  if (file.endsWith('.ts')) stripTypeScriptTypes(text);
  return text;
}
