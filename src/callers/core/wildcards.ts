const MAX_PATTERNS = 50;
const MAX_VALUE_LENGTH = 500;

/**
 * True if one of the values matches one of the patterns in a comma-separated list. A missing or empty list matches all.
 */
export function matchesAnyPattern(list: string | null, ...values: readonly string[]): boolean {
  const patterns = (list ?? '').split(',', MAX_PATTERNS).map((pattern) => pattern.trim());
  const named = patterns.filter((pattern) => pattern !== '');
  return named.length === 0 || values.some((value) => named.some((pattern) => matchesPattern(pattern, value)));
}

/**
 * True if a value matches a pattern, in which `*` stands for any characters, including `/`. The search for the parts
 * between the stars is one pass without backtracking.
 */
export function matchesPattern(pattern: string, value: string): boolean {
  if (value.length > MAX_VALUE_LENGTH) return false;
  const [first, ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return pattern === value;
  if (!value.startsWith(first!) || !value.endsWith(last)) return false;
  const end = value.length - last.length;
  let position = first!.length;
  for (const part of rest) {
    const found = value.indexOf(part, position);
    if (found === -1) return false;
    position = found + part.length;
  }
  return position <= end;
}
