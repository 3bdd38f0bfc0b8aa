const MAX_PATTERNS = 50;
const MAX_VALUE_LENGTH = 500;

/**
 * True if one of the values matches one of the patterns in a comma-separated list. A missing or empty list matches all.
 */
export function matchesAnyPattern(patternList: string | null, ...values: readonly string[]): boolean {
  const patterns = (patternList ?? '').split(',', MAX_PATTERNS).map((pattern) => pattern.trim());
  const nonEmptyPatterns = patterns.filter((pattern) => pattern !== '');
  return (
    nonEmptyPatterns.length === 0 ||
    values.some((value) => nonEmptyPatterns.some((pattern) => matchesPattern(pattern, value)))
  );
}

/**
 * True if a value matches a pattern, in which `*` stands for any characters, including `/`. The search for the parts
 * between the stars is one pass without backtracking.
 */
export function matchesPattern(pattern: string, value: string): boolean {
  if (value.length > MAX_VALUE_LENGTH) return false;
  const [first, ...rest] = pattern.split('*');
  const suffix = rest.pop();
  if (suffix === undefined) return pattern === value;
  if (!value.startsWith(first!) || !value.endsWith(suffix)) return false;
  const suffixStart = value.length - suffix.length;
  let searchStart = first!.length;
  for (const part of rest) {
    const found = value.indexOf(part, searchStart);
    if (found === -1) return false;
    searchStart = found + part.length;
  }
  return searchStart <= suffixStart;
}
