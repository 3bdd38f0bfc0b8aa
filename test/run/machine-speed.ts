/** How much slower this machine was at the start of the run than one on which the tests are written; at least 1. */
const SLOWNESS = Number(process.env['KLATCH_TEST_SLOWNESS'] ?? '1');

/**
 * An upper bound of a duration that is part of what is tested, written for a fast machine and stretched on a slow one
 * (machine-calibration.ts). What only catches a hang takes no bound at all: jest and `eventually` have one.
 */
export function within(ms: number): number {
  return ms * SLOWNESS;
}
