import { sortedIndexKeys } from './concatenation.ts';
import type { ArrayValue, Value } from './value.ts';

/**
 * Returns an array unchanged, and an object whose keys are positions (`0`, `1` …) as an array; null for any other
 * value.
 */
export function coerceToArray(value: Value): ArrayValue | null {
  if (value.kind === 'array') return value;
  if (value.kind !== 'object') return null;
  const keys = sortedIndexKeys(value.entries.keys());
  if (keys.length === 0) return null;
  return { kind: 'array', origin: value.origin, items: keys.map((key) => value.entries.get(key)!) };
}
