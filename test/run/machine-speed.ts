/** The factor by which this machine was slower than the reference machine at the start of the run; at least 1. */
const SLOWNESS = Number(process.env['KLATCH_TEST_SLOWNESS'] ?? '1');

/**
 * An upper bound of a duration that the test is about, written for a fast machine and multiplied on a slow one
 * (machine-calibration.ts). A limit that only catches a hang needs no bound: jest and `eventually` have one.
 */
export function within(ms: number): number {
  return ms * SLOWNESS;
}
