/** Upper bounds of the duration buckets, in ms; one more bucket counts longer requests. */
export const DURATION_BOUNDS_MS = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000] as const;

/**
 * In how many ms a share of the requests had ended, as the bound of the count that it falls into. Null without a request,
 * and where it took longer than the last bound.
 */
export function durationQuantileBoundMs(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  let ended = 0;
  const index = counts.findIndex((count) => (ended += count) >= total * share && ended > 0);
  return DURATION_BOUNDS_MS[index] ?? null;
}
