/**
 * The bucket bounds for durations, in seconds. They range from a look-up in memory to a time for which no caller waits.
 */
export const DURATION_BOUNDS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;

/** The counts of a histogram, in the form that Prometheus needs. */
export interface HistogramCounts {
  /** The upper bounds of the buckets, ascending, without the infinite one. */
  readonly bounds: readonly number[];
  /** For each bound, the number of all observations up to this bound. */
  readonly cumulative: readonly number[];
  readonly count: number;
  readonly sum: number;
}

/**
 * Counts observations in fixed buckets. Every post and every delivery makes observations, so one allocates nothing and
 * takes about ten nanoseconds. The expensive work is done when the counts are read.
 */
export class Histogram {
  readonly #bounds: readonly number[];
  /**
   * The number of observations in each bucket. There is one bucket more than bounds, for observations above all bounds.
   */
  readonly #buckets: number[];
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#buckets = bounds.map(() => 0);
    this.#buckets.push(0);
  }

  observe(value: number): void {
    let bucketIndex = 0;
    while (bucketIndex < this.#bounds.length && value > this.#bounds[bucketIndex]!) bucketIndex += 1;
    this.#buckets[bucketIndex]! += 1;
    this.#sum += value;
  }

  read(): HistogramCounts {
    let count = 0;
    const cumulative = this.#buckets.map((inBucket) => (count += inBucket));
    return { bounds: this.#bounds, cumulative: cumulative.slice(0, -1), count, sum: this.#sum };
  }
}
