import { median } from '../support/report.ts';
import type { Measure } from './rows.ts';
import type { SideName } from './sides.ts';

/**
 * Returns the median of each side's figures over the rounds. If no figure of the bare page is 0, the result also has
 * the median of the rounds' ratios.
 */
export function compareRounds(figures: ReadonlyMap<SideName, readonly number[]>): Measure {
  const klatch = figures.get('klatch')!;
  const [bare, lounge] = [figures.get('bare'), figures.get('lounge')];
  const hasRatio = bare !== undefined && bare.every((value) => value > 0);
  return {
    klatch: median(klatch),
    ...(bare === undefined ? {} : { bare: median(bare) }),
    ...(hasRatio ? { ratio: median(klatch.map((value, n) => value / bare[n]!)) } : {}),
    ...(lounge === undefined ? {} : { lounge: median(lounge) }),
  };
}

/** Picks one figure of each result. */
export function pick<T>(
  results: ReadonlyMap<SideName, readonly T[]>,
  of: (result: T) => number,
): Map<SideName, number[]> {
  return new Map([...results].map(([name, each]) => [name, each.map(of)]));
}
