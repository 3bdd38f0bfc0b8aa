/** Bounds of the wait between attempts. */
export interface BackoffDelays {
  readonly unjitteredFirstDelayMs: number;
  readonly maxMs: number;
}

export const DEFAULT_BACKOFF: BackoffDelays = { unjitteredFirstDelayMs: 500, maxMs: 30_000 };

/**
 * The wait before the next attempt after `failures` in a row: it doubles up to the bound. Half of it is random, so that
 * the clients of a recovering server do not all reconnect at the same instant.
 */
export function backoffMs(
  failures: number,
  { unjitteredFirstDelayMs, maxMs }: BackoffDelays,
  chance = Math.random(),
): number {
  const wholeMs = Math.min(maxMs, unjitteredFirstDelayMs * 2 ** Math.min(failures, 30));
  return Math.round(wholeMs / 2 + (wholeMs / 2) * chance);
}
