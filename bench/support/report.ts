/** The middle value; for an even number of values, the lower of the two middle ones. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? Number.NaN;
}

/** The percentile: the value below which this share of the values lies; 0 without values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** One line of JSON for programs, after the table for people. */
export interface BenchLine {
  readonly bench: string;
  /** The median of the ratios to the baseline of the same round. */
  readonly ratio: number;
  readonly baseline: string;
  /** The median of the measured rates, per second. */
  readonly rate: number;
  /** The bound of the ratio; absent if the benchmark has none. */
  readonly target?: number;
  readonly [more: string]: unknown;
}

export function report(title: string, rows: readonly Record<string, unknown>[], line: BenchLine): void {
  console.log(`\n${title}`);
  console.table(rows);
  console.log(JSON.stringify(line));
}

export function round(value: number, digits = 0): number {
  return Number(value.toFixed(digits));
}
