/** The ratio of two rates with its 95 % interval. */
export interface RatioInterval {
  /** The middle of the interval: exp of the mean of the logarithms. */
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
  readonly pairs: number;
}

/** Quantiles of Student's t at 97.5 % for 1 to 30 degrees of freedom, then for the listed ones. */
const T_975 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
] as const;
const T_975_BEYOND = [
  [30, 2.042],
  [40, 2.021],
  [60, 2],
  [120, 1.98],
  [Number.POSITIVE_INFINITY, 1.96],
] as const;

/** Student's t at 97.5 %; between the listed degrees of freedom, interpolated in their reciprocal. */
export function studentT975(degrees: number): number {
  if (!Number.isInteger(degrees) || degrees < 1)
    throw new RangeError(`there is no t for ${degrees} degrees of freedom`);
  if (degrees <= T_975.length) return T_975[degrees - 1]!;
  const above = T_975_BEYOND.findIndex(([listed]) => degrees <= listed);
  const [lowDegrees, lowT] = T_975_BEYOND[above - 1]!;
  const [highDegrees, highT] = T_975_BEYOND[above]!;
  const share = (1 / lowDegrees - 1 / degrees) / (1 / lowDegrees - 1 / highDegrees);
  return lowT + share * (highT - lowT);
}

/**
 * The ratio B to A of pairs, each measured within the same minute, with Student's interval on the logarithms of the
 * pairs' ratios. Logarithms make B to A the reciprocal of A to B. Bootstrap intervals are too narrow for the five to
 * forty pairs that half an hour allows. Null for fewer than two pairs.
 */
export function ratioInterval(pairs: readonly { readonly a: number; readonly b: number }[]): RatioInterval | null {
  if (pairs.length < 2) return null;
  const logs = pairs.map(({ a, b }) => Math.log(b / a));
  const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length;
  const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / (logs.length - 1);
  const half = studentT975(logs.length - 1) * Math.sqrt(variance / logs.length);
  return { ratio: Math.exp(mean), low: Math.exp(mean - half), high: Math.exp(mean + half), pairs: logs.length };
}

/** An interval is narrow when both its ends are at most 1.5 % from its middle. */
const NARROW = 0.015;
/** Fewer pairs do not show their spread well enough to stop. */
const MIN_PAIRS = 5;

export function isNarrow({ ratio, low, high, pairs }: RatioInterval): boolean {
  return pairs >= MIN_PAIRS && high / ratio <= 1 + NARROW && low / ratio >= 1 - NARROW;
}

/** A bar is undecided while the interval is not narrow; an undecided bar counts as missed. */
export function judge(interval: RatioInterval | null, bar: number): 'held' | 'missed' | 'undecided' {
  if (interval === null || !isNarrow(interval)) return 'undecided';
  return interval.ratio >= bar ? 'held' : 'missed';
}
