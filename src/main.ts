import { dirname, join } from 'node:path';
import { isSea } from 'node:sea';

/**
 * The number of libuv's threads for DNS look-ups, files and scrypt. libuv reads UV_THREADPOOL_SIZE when it creates its
 * pool, at the first call that needs a thread. So the variable must be set before other modules are loaded (16 threads
 * counted on Node 24.21; test/cli/serve.test.ts checks it). The bound of `delivery.dns-concurrency` is half of them.
 */
const THREAD_POOL_SIZE = '16';

/**
 * The folder of the program, `<root>/bin`:
 * - release zip and source tree: the folder of the launcher, which passes its real path
 * - single binary, whose code is in no folder of the disk: `bin` beside it
 * - otherwise: `bin` of the source tree
 */
function programBinDir(): string {
  const launcher = process.env['KLATCH_LAUNCHER'];
  if (launcher !== undefined && launcher !== '') return dirname(launcher);
  return isSea() ? join(dirname(process.execPath), 'bin') : join(import.meta.dirname, '../bin');
}

async function main(): Promise<void> {
  // The title is set first: otherwise `ps` would show the process as "MainThread" or "node".
  process.title = 'klatch';
  process.env['UV_THREADPOOL_SIZE'] = THREAD_POOL_SIZE;
  const { runCommandLine } = await import('./cli/program.ts');
  const exitCode = await runCommandLine(process.argv.slice(2), {
    env: process.env,
    programBinDir: programBinDir(),
    // A getter, because Node opens standard input when it is first read, and most commands never read it.
    get input() {
      return process.stdin;
    },
    output: process.stdout,
    errorOutput: process.stderr,
  });
  await Promise.all([process.stdout, process.stderr].map(flushed));
  // Exits even if something is still open. Waits for one turn of the event loop, in which a failed write is reported.
  setImmediate(() => process.exit(exitCode));
}

/**
 * Resolves when all output was written. An earlier exit would lose the data that did not fit into a pipe (a pipe has 64
 * KiB).
 */
function flushed(output: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => output.write('', () => resolve()));
}

void main();
