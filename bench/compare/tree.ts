import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A source tree with benchmarks. */
export interface Tree {
  readonly name: string;
  readonly folder: string;
}

const ROOT = join(import.meta.dirname, '../..');

/** The source tree of this file in its current state, with uncommitted changes. */
export const THIS_TREE: Tree = { name: 'this tree', folder: ROOT };

/**
 * Checks a commit out into a folder of its own and adds its libraries. `remove` removes the folder. Throws when git
 * does not know the commit.
 */
export function checkOut(commit: string): { tree: Tree; remove: () => void } {
  const id = git(ROOT, ['rev-parse', '--verify', '--quiet', `${commit}^{commit}`]).trim();
  const parent = mkdtempSync(join(tmpdir(), 'klatch-base-'));
  const remove = (): void => rmSync(parent, { recursive: true, force: true });
  try {
    const folder = join(parent, 'klatch');
    // A clone rather than a git worktree: so a killed run leaves nothing in this repository.
    git(ROOT, ['clone', '--quiet', '--shared', '--no-checkout', ROOT, folder]);
    git(folder, ['checkout', '--quiet', '--detach', id]);
    addLibraries(folder);
    return { tree: { name: id.slice(0, 12), folder }, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/**
 * Adds the libraries: those of this tree if the lock files are the same, otherwise npm installs those of the commit.
 */
function addLibraries(folder: string): void {
  const lockOf = (of: string): string => readFileSync(join(of, 'package-lock.json'), 'utf8');
  const ours = join(ROOT, 'node_modules');
  if (lockOf(folder) === lockOf(ROOT) && existsSync(ours)) {
    symlinkSync(ours, join(folder, 'node_modules'));
    return;
  }
  console.error('  the libraries are others: npm ci ...');
  execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder, stdio: 'inherit' });
}

function git(folder: string, args: readonly string[]): string {
  try {
    return execFileSync('git', ['-C', folder, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (cause) {
    throw new Error(`git ${args.slice(0, 2).join(' ')} failed: is ${args.at(-1)} a commit of this repository?`, {
      cause,
    });
  }
}
