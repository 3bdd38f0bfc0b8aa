/** The factor by which this machine was slower than the reference machine at the start of the run; at least 1. */
const SLOWNESS = Number(process.env['KLATCH_TEST_SLOWNESS'] ?? '1');

/**
 * Returns an upper bound, in ms, of a duration that the test is about. `ms` is the bound for a fast machine; on a slow
 * one it is multiplied (machine-calibration.ts). A limit that only catches a hang needs no bound: jest and `eventually`
 * have one.
 */
export function within(ms: number): number {
  return ms * SLOWNESS;
}
