import { spawnSync, type SpawnSyncOptions } from 'node:child_process';

/** Prints the current step on standard error. */
export function step(what: string): void {
  console.error(`  ${what} ...`);
}

/** Runs a program and returns its standard output; throws with its output when it fails or is missing. */
export function run(program: string, args: readonly string[], options: SpawnSyncOptions = {}): string {
  const { status, signal, error, stdout, stderr } = spawnSync(program, args, {
    maxBuffer: 64 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...options,
    encoding: 'utf8',
  });
  if (error !== undefined) throw new Error(`${program} could not be run: ${error.message}`, { cause: error });
  if (status === 0) return stdout ?? '';
  const said = `${stdout ?? ''}${stderr ?? ''}`.trim().split('\n').slice(-15).join('\n');
  throw new Error(`${program} ${args.slice(0, 3).join(' ')} … ended with ${signal ?? status}:\n${said}`);
}
