import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
/**
 * The time in ms that STARTS concurrent starts of `klatch --version` take on the reference machine (two cores), by form
 * of the program.
 */
const REFERENCE_MS = { bundle: 107, sources: 277 } as const;
/** The number of concurrent starts: as many as jest has workers. */
const STARTS = 4;
const ROUNDS = 5;

/**
 * Measures how slow this machine is now, by starts of the program, and stores the factor for machine-speed.ts. The
 * first start fills the compile cache and does not count.
 */
export async function calibrate(main: string, form: keyof typeof REFERENCE_MS): Promise<void> {
  const start = (): Promise<unknown> => run(process.execPath, [main, '--version']);
  await start();
  const taken: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: STARTS }, start));
    taken.push(performance.now() - startedAt);
  }
  const median = taken.sort((a, b) => a - b)[(ROUNDS - 1) / 2]!;
  process.env['KLATCH_TEST_SLOWNESS'] = Math.max(1, median / REFERENCE_MS[form]).toFixed(2);
}
