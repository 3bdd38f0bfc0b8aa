/** How long to wait between attempts. */
export interface BackoffDelays {
  readonly unjitteredFirstDelayMs: number;
  readonly maxMs: number;
}

export const DEFAULT_BACKOFF: BackoffDelays = { unjitteredFirstDelayMs: 500, maxMs: 30_000 };

/**
 * The wait before the next attempt after so many failures in a row: it doubles up to the bound, and half of it is
 * chance, so that the clients of a server that comes back do not all come in the same instant.
 */
export function backoffMs(
  failures: number,
  { unjitteredFirstDelayMs, maxMs }: BackoffDelays,
  chance = Math.random(),
): number {
  const wholeMs = Math.min(maxMs, unjitteredFirstDelayMs * 2 ** Math.min(failures, 30));
  return Math.round(wholeMs / 2 + (wholeMs / 2) * chance);
}
