import { dirname, join } from 'node:path';
import { isSea } from 'node:sea';

/**
 * Threads for name look-ups, files and scrypt. libuv reads the variable when it makes its pool, that is at the first
 * call that needs one: set here, before anything else is loaded, it takes effect (16 threads counted on Node 24.21;
 * test/cli/serve.test.ts holds it). delivery.dns-concurrency is bounded to half of them.
 */
const THREAD_POOL_SIZE = '16';

/**
 * The folder of the program, `<root>/bin`: that of the launcher in the release zip and the source tree, whose real path
 * the launcher says; `bin` beside the single binary (its own code is in no folder of the disk); else the source tree's.
 */
function programBinDir(): string {
  const launcher = process.env['KLATCH_LAUNCHER'];
  if (launcher !== undefined && launcher !== '') return dirname(launcher);
  return isSea() ? join(dirname(process.execPath), 'bin') : join(import.meta.dirname, '../bin');
}

async function main(): Promise<void> {
  // First: `ps` would call the process "MainThread" or "node".
  process.title = 'klatch';
  process.env['UV_THREADPOOL_SIZE'] = THREAD_POOL_SIZE;
  const { runCommandLine } = await import('./cli/program.ts');
  const exitCode = await runCommandLine(process.argv.slice(2), {
    env: process.env,
    programBinDir: programBinDir(),
    // Node opens standard input when it is asked for: most commands never read it.
    get input() {
      return process.stdin;
    },
    output: process.stdout,
    errorOutput: process.stderr,
  });
  await Promise.all([process.stdout, process.stderr].map(flushed));
  // Whatever was left open must not keep a process that has said it is done; a failed write is told a tick later.
  setImmediate(() => process.exit(exitCode));
}

/** Resolves when the reader has taken everything: an exit would drop what a full pipe has not (64 KiB are enough). */
function flushed(output: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => output.write('', () => resolve()));
}

void main();
