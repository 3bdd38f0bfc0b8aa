import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
/** A test that imports one of these starts a process or a server, or connects to one. */
const SLOW_PACKAGES =
  /^(?:node:(?:child_process|net|http|https|http2|tls|dgram|cluster|worker_threads)|ws|undici|esbuild|smtp-server|s3rver|postgres)$/;
/**
 * Files of the project whose import makes a test slow as well. They use the database, which only a complete run has,
 * listen on a port, or start a process.
 */
const SLOW_FILES = [
  'test/support/database.ts',
  'src/server.ts',
  'src/listen.ts',
  'src/storage/db/connection.ts',
  'src/storage/embedded/embedded.ts',
  'src/storage/embedded/programs.ts',
  'src/storage/embedded/run-program.ts',
].map((file) => join(ROOT, file));

const moved = SLOW_FILES.filter((file) => !existsSync(file));
if (moved.length > 0) throw new Error(`scripts/fast-tests.ts names files that are not there: ${moved.join(', ')}`);

/** The imports of a file at run time, without type imports. */
function importsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  const statements = text.matchAll(/(?:^|\n)\s*(?:import|export)\s(?!type\b)(?:[^'";]*?\sfrom\s*)?'([^']+)'/g);
  const calls = text.matchAll(/\bimport\(\s*'([^']+)'\s*\)/g);
  return [...statements, ...calls].map((match) => match[1]!);
}

/**
 * The tests that start no process and no server, sorted by name. A test qualifies under two conditions:
 * - Neither it nor the files of test/, scripts/, faults/ and packages/ that it imports import a slow package.
 * - None of them imports a slow file.
 * A check at run time enforces the rule as well (test/run/no-processes.ts).
 */
export function fastTests(): string[] {
  const judged = new Map<string, boolean>();
  const isFast = (file: string): boolean => {
    const known = judged.get(file);
    if (known !== undefined) return known;
    judged.set(file, true);
    const fast = importsOf(file).every((name) => {
      if (!name.startsWith('.')) return !SLOW_PACKAGES.test(name);
      const target = resolve(dirname(file), name);
      if (SLOW_FILES.includes(target)) return false;
      return /^(?:src|client)\//.test(relative(ROOT, target)) || !target.endsWith('.ts') || isFast(target);
    });
    judged.set(file, fast);
    return fast;
  };
  return testFiles()
    .filter((name) => !/^test\/(?:package|foreign)\//.test(name))
    .filter((name) => isFast(join(ROOT, name)));
}

/** All tests of the project and of its packages, relative to the project's root, sorted. */
function testFiles(): string[] {
  return ['test', 'packages']
    .flatMap((folder) => readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .sort();
}
