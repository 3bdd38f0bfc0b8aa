import type { ObjectValue, Value } from './value.ts';

/** The value at a path given as a list of keys, or null where there is none; an empty path gives the root. */
export function valueAt(root: ObjectValue, path: readonly string[]): Value | null {
  let value: Value = root;
  for (const key of path) {
    const next: Value | undefined = value.kind === 'object' ? value.entries.get(key) : undefined;
    if (next === undefined) return null;
    value = next;
  }
  return value;
}
