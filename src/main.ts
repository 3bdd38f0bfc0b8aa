import { dirname, join } from 'node:path';
import { isSea } from 'node:sea';

/**
 * Threads for name look-ups, files and scrypt. libuv reads the variable when it creates its pool, at the first call
 * that needs one. Set here, before anything else is loaded, it takes effect: 16 threads counted on Node 24.21;
 * test/cli/serve.test.ts checks it. delivery.dns-concurrency is bounded to half of them.
 */
const THREAD_POOL_SIZE = '16';

/**
 * The folder of the program, `<root>/bin`. In the release zip and the source tree it is that of the launcher, which
 * passes its real path; for the single binary it is the `bin` beside it (its own code is in no folder of the disk);
 * else the source tree's.
 */
function programBinDir(): string {
  const launcher = process.env['KLATCH_LAUNCHER'];
  if (launcher !== undefined && launcher !== '') return dirname(launcher);
  return isSea() ? join(dirname(process.execPath), 'bin') : join(import.meta.dirname, '../bin');
}

async function main(): Promise<void> {
  // Set first: otherwise `ps` would call the process "MainThread" or "node".
  process.title = 'klatch';
  process.env['UV_THREADPOOL_SIZE'] = THREAD_POOL_SIZE;
  const { runCommandLine } = await import('./cli/program.ts');
  const exitCode = await runCommandLine(process.argv.slice(2), {
    env: process.env,
    programBinDir: programBinDir(),
    // A getter, because Node opens standard input at the first access: most commands never read it.
    get input() {
      return process.stdin;
    },
    output: process.stdout,
    errorOutput: process.stderr,
  });
  await Promise.all([process.stdout, process.stderr].map(flushed));
  // A handle that was left open must not keep a finished process alive; a failed write is reported a tick later.
  setImmediate(() => process.exit(exitCode));
}

/**
 * Resolves when the reader has taken everything: an exit would drop what a full pipe has not taken (64 KiB are enough).
 */
function flushed(output: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => output.write('', () => resolve()));
}

void main();
