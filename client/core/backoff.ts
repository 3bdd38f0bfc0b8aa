/** The shortest and the longest wait between two attempts, both before the random reduction by up to half. */
export interface BackoffDelays {
  readonly unjitteredFirstDelayMs: number;
  readonly maxDelayMs: number;
}

export const DEFAULT_BACKOFF: BackoffDelays = { unjitteredFirstDelayMs: 500, maxDelayMs: 30_000 };

/**
 * The wait before the next attempt, in milliseconds. With each further failure it doubles, up to `maxDelayMs`. Half of
 * it is random, so that the clients of a recovering server do not all reconnect at the same instant.
 */
export function backoffMs(
  failures: number,
  { unjitteredFirstDelayMs, maxDelayMs: maxMs }: BackoffDelays,
  chance = Math.random(),
): number {
  const unjitteredMs = Math.min(maxMs, unjitteredFirstDelayMs * 2 ** Math.min(failures, 30));
  return Math.round(unjitteredMs / 2 + (unjitteredMs / 2) * chance);
}
