import { holdsInvisible } from './invisible-text.ts';

/** The bounds of the time in which a group may expect the next post with a key. */
const EXPECTATION_BOUNDS_S = { min: 60, max: 366 * 86_400 } as const;
export const MAX_EXPECTATIONS_PER_GROUP = 100;
/** The maximum length of a key in UTF-16 units. */
const MAX_EXPECTATION_KEY_LENGTH = 200;

/** An expectation as a post names it. Each post with the key of an expectation is a sign of life. */
export interface PostedExpectation {
  readonly key: string;
  /**
   * A number: sets the time, in seconds, in which the next post is expected. `off`: removes the expectation. Null:
   * changes nothing.
   */
  readonly within: number | 'off' | null;
  /** Whether the post is refused where the group has as many expectations as it may have. */
  readonly mustRefusePostAtLimit: boolean;
}

export const WITHIN_SENTENCE = 'must be a duration from 1m to 366d, such as 26h';
export const EXPECTATION_KEY_SENTENCE = `must be one line of 1 to ${MAX_EXPECTATION_KEY_LENGTH} characters that can be seen`;

const DURATION_PATTERN = /^(\d{1,9}(?:\.\d{1,9})?)\s{0,3}([a-z]{1,7})$/;
/** The configuration's units of time from the second upwards, each in seconds. */
const UNITS_S: ReadonlyMap<string, number> = new Map(
  (
    [
      ['s second seconds', 1],
      ['m minute minutes', 60],
      ['h hour hours', 3_600],
      ['d day days', 86_400],
      ['w week weeks', 604_800],
    ] as const
  ).flatMap(([names, seconds]) => names.split(' ').map((name) => [name, seconds] as const)),
);
const DURATION_FORMAT_UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
] as const;

/**
 * The seconds of a duration such as `26h`, in the notation of the configuration; null if the text is no duration, or
 * the duration is out of bounds.
 */
export function parseWithin(text: string): number | null {
  const match = DURATION_PATTERN.exec(text.trim());
  const unitS = UNITS_S.get(match?.[2] ?? '');
  if (match === null || unitS === undefined) return null;
  const seconds = Math.round(Number(match[1]) * unitS);
  return seconds >= EXPECTATION_BOUNDS_S.min && seconds <= EXPECTATION_BOUNDS_S.max ? seconds : null;
}

/** Seconds as a duration, in the largest unit that divides them: `26h`. */
export function formatWithin(seconds: number): string {
  const [name, unit] = DURATION_FORMAT_UNITS.find(([, each]) => seconds % each === 0) ?? ['s', 1];
  return `${seconds / unit}${name}`;
}

/** The text without white space around it; null if it cannot be the key of an expectation. */
export function parseExpectationKey(text: string): string | null {
  if (text.length > 2 * MAX_EXPECTATION_KEY_LENGTH) return null;
  const key = text.trim();
  return key === '' || key.length > MAX_EXPECTATION_KEY_LENGTH || holdsInvisible(key) ? null : key;
}
