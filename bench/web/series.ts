const MINUTE_MS = 60_000;

/** `[Unix time in ms, number]`: from that time on, the page showed all messages up to that number. */
export type Shown = readonly [at: number, number: number];

/**
 * Returns the time from `atMs`, when a message was known to be stored, until the page showed it, in ms. It is infinite
 * for a message that the page never showed.
 */
export function lagsOf(
  commits: readonly { readonly number: number; readonly atMs: number }[],
  shown: readonly Shown[],
): number[] {
  let next = 0;
  return commits
    .toSorted((a, b) => a.number - b.number)
    .map(({ number, atMs }) => {
      while (next < shown.length && shown[next]![1] < number) next += 1;
      const at = shown[next]?.[0];
      return at === undefined ? Number.POSITIVE_INFINITY : Math.max(0, at - atMs);
    });
}

/** The size of a heap at one time. */
export interface HeapSample {
  readonly atMs: number;
  readonly megabytes: number;
}

/** The slope of the least-squares line through the samples, in MB a minute. */
export function slopeOf(samples: readonly HeapSample[]): number {
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const minutes = samples.map(({ atMs }) => atMs / MINUTE_MS);
  const [x, y] = [mean(minutes), mean(samples.map(({ megabytes }) => megabytes))];
  const covariance = samples.reduce((sum, { megabytes }, n) => sum + (minutes[n]! - x) * (megabytes - y), 0);
  const variance = minutes.reduce((sum, minute) => sum + (minute - x) ** 2, 0);
  return variance === 0 ? 0 : covariance / variance;
}
