/** The ratio of two rates with its 95 % interval. */
export interface RatioInterval {
  /** The middle of the interval on a logarithmic scale: exp of the mean of the logarithms. */
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
  readonly pairs: number;
}

/** The quantile 97.5 % of Student's t, for 1 to 30 degrees of freedom, then for those of the list below. */
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

/** The quantile 97.5 % of Student's t. Between listed degrees of freedom, it is interpolated in their reciprocal. */
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

interface RatePair {
  readonly a: number;
  readonly b: number;
}

/**
 * The ratio of B to A, from pairs that were each measured within the same minute. The interval is Student's, on the
 * logarithms of the pairs' ratios. Logarithms make B to A the reciprocal of A to B. Bootstrap intervals are too narrow
 * for the five to forty pairs that half an hour allows. Null for fewer than two pairs.
 */
export function ratioInterval(pairs: readonly RatePair[]): RatioInterval | null {
  if (pairs.length < 2) return null;
  const logs = logsOf(pairs);
  const variance = squaresOf(logs) / (logs.length - 1);
  return intervalOf({ logs, variance, degrees: logs.length - 1 });
}

/**
 * Like `ratioInterval`, for pairs of which every second one begins with B (a crossover design). The server that starts
 * second may always be slower or faster. That effect changes neither the middle nor the width of this interval. With 9
 * pairs in which the second server was 6 % slower, `ratioInterval` gave ± 6 % and this one ± 2.7 %. `second` is the
 * ratio of the rate of the server that starts second to that of the first. Null for fewer than four pairs.
 */
export function crossoverInterval(pairs: readonly RatePair[]): (RatioInterval & { readonly second: number }) | null {
  if (pairs.length < 4) return null;
  const groups = [0, 1].map((rest) => logsOf(pairs.filter((_, index) => index % 2 === rest)));
  const [beganWithA, beganWithB] = groups as [number[], number[]];
  const degrees = pairs.length - 2;
  const variance = (squaresOf(beganWithA) + squaresOf(beganWithB)) / degrees;
  const effect = (meanOf(beganWithA) - meanOf(beganWithB)) / 2;
  // Without the effect of the start order, both groups have the same mean, even if one has a pair more.
  const logs = [...beganWithA.map((log) => log - effect), ...beganWithB.map((log) => log + effect)];
  return { ...intervalOf({ logs, variance, degrees }), second: Math.exp(effect) };
}

function logsOf(pairs: readonly RatePair[]): number[] {
  return pairs.map(({ a, b }) => Math.log(b / a));
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The sum of the squared distances from the mean. */
function squaresOf(values: readonly number[]): number {
  const mean = meanOf(values);
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
}

interface Spread {
  readonly logs: readonly number[];
  readonly variance: number;
  readonly degrees: number;
}

function intervalOf({ logs, variance, degrees }: Spread): RatioInterval {
  const mean = meanOf(logs);
  const half = studentT975(degrees) * Math.sqrt(variance / logs.length);
  return { ratio: Math.exp(mean), low: Math.exp(mean - half), high: Math.exp(mean + half), pairs: logs.length };
}

/** An interval is narrow when both its ends are at most 1.5 % from its middle. */
const NARROW = 0.015;
/** With fewer pairs their spread cannot be estimated, so the comparison does not stop before. */
const MIN_PAIRS = 5;

export function isNarrow({ ratio, low, high, pairs }: RatioInterval): boolean {
  return pairs >= MIN_PAIRS && high / ratio <= 1 + NARROW && low / ratio >= 1 - NARROW;
}

/** A bar is undecided while the interval is not narrow; an undecided bar counts as missed. */
export function judge(interval: RatioInterval | null, bar: number): 'held' | 'missed' | 'undecided' {
  if (interval === null || !isNarrow(interval)) return 'undecided';
  return interval.ratio >= bar ? 'held' : 'missed';
}
