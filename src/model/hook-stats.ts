/**
 * The upper bounds of the buckets that count requests by their duration, in ms. One more bucket counts longer requests.
 */
export const DURATION_BOUNDS_MS = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000] as const;

/**
 * The upper bound, in ms, of the first bucket by which `share` of all requests had ended (0.5: half of them). Null if
 * there was no request, or if the bucket is the one above the last bound.
 */
export function durationQuantileBoundMs(bucketCounts: readonly number[], share: number): number | null {
  const total = bucketCounts.reduce((sum, count) => sum + count, 0);
  let cumulativeCount = 0;
  const index = bucketCounts.findIndex((count) => (cumulativeCount += count) >= total * share && cumulativeCount > 0);
  return DURATION_BOUNDS_MS[index] ?? null;
}
