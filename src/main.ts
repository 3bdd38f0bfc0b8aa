import { join } from 'node:path';

/**
 * Threads for name look-ups, files and scrypt. libuv reads the variable when it makes its pool, that is at the first
 * call that needs one: set here, before anything else is loaded, it takes effect (16 threads counted on Node 24.21;
 * test/cli/serve.test.ts holds it). delivery.lookups is bounded to half of them.
 */
const THREADS = '16';

async function main(): Promise<void> {
  // First: `ps` would call the process "MainThread" or "node".
  process.title = 'klatch';
  process.env['UV_THREADPOOL_SIZE'] = THREADS;
  const { runCommandLine } = await import('./cli/program.ts');
  const exitCode = await runCommandLine(process.argv.slice(2), {
    env: process.env,
    programDir: join(import.meta.dirname, '../bin'),
    input: process.stdin,
    output: process.stdout,
    errors: process.stderr,
  });
  // Whatever was left open must not keep a process that has said it is done; a failed write is told a tick later.
  setImmediate(() => process.exit(exitCode));
}

void main();
