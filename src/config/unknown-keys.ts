import { coerceToArray, type ObjectValue, type Value } from '../../packages/hocon/src/index.ts';
import { editDistance } from './edit-distance.ts';
import type { KeySpec } from './value-types.ts';

/** A key that the schema does not contain, and the key of the schema that was probably meant. */
interface UnknownKey {
  readonly key: string;
  readonly value: Value;
  readonly suggestion: string | null;
}

type NestedFullPathKey = Pick<UnknownKey, 'value'> & { readonly suggestion: string };
type KeySpecEntries = readonly (readonly [string, KeySpec<unknown>])[];

/** All sections in the paths of these keys, such as http, services and services.postgresql. */
export function sectionsOf(keys: readonly string[]): ReadonlySet<string> {
  const sections = keys.flatMap((key) => {
    const parts = key.split('.');
    return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('.'));
  });
  return new Set(sections);
}

/** Finds keys that the schema does not contain. An unknown section is reported once, without its keys. */
export function findUnknownKeys(root: ObjectValue, entries: KeySpecEntries): UnknownKey[] {
  const specByKey = new Map(entries);
  const sections = sectionsOf([...specByKey.keys()]);
  const names = [...specByKey.keys(), ...sections];
  const found: UnknownKey[] = [];
  const visit = (object: ObjectValue, prefix: string): void => {
    for (const [name, value] of object.entries) {
      const key = prefix + quoteIfDotted(name);
      const entry = specByKey.get(key);
      if (entry !== undefined) found.push(...unknownFieldsOfListItems(key, value, entry));
      else if (sections.has(key)) {
        if (value.kind === 'object') visit(value, `${key}.`);
      } else {
        const misplaced = prefix === '' ? [] : findNestedFullPaths(quoteIfDotted(name), value, specByKey);
        if (misplaced.length === 0) found.push({ key, value, suggestion: suggestKey(key, names) });
        for (const misplacedKey of misplaced) found.push({ ...misplacedKey, key: prefix + misplacedKey.suggestion });
      }
    }
  };
  visit(root, '');
  return found;
}

/**
 * Writes a name with a dot in quotes: `"http.port" = 1` sets one key with a dot in its name, and not the key `port` in
 * the section `http`.
 */
function quoteIfDotted(name: string): string {
  return name.includes('.') ? `"${name}"` : name;
}

/** Finds keys of the schema that were written with their full path inside the braces of a section. */
function findNestedFullPaths(path: string, value: Value, known: ReadonlyMap<string, unknown>): NestedFullPathKey[] {
  if (known.has(path)) return [{ value, suggestion: path }];
  if (value.kind !== 'object') return [];
  return [...value.entries].flatMap(([name, inner]) =>
    findNestedFullPaths(`${path}.${quoteIfDotted(name)}`, inner, known),
  );
}

/** Finds unknown fields of the objects in a list. */
function unknownFieldsOfListItems(key: string, value: Value, entry: KeySpec<unknown>): UnknownKey[] {
  const fields = entry.kind.items?.fields ?? null;
  const list = coerceToArray(value);
  if (fields === null || list === null) return [];
  const known = Object.keys(fields);
  return list.items.flatMap((item, index) => {
    if (item.kind !== 'object') return [];
    return [...item.entries]
      .filter(([name]) => !known.includes(name))
      .map(([name, field]) => ({ key: `${key}[${index}].${name}`, value: field, suggestion: suggestKey(name, known) }));
  });
}

/**
 * The known key with the most similar spelling. If none is similar: the key with the same last word and the fewest
 * sections, unless two keys have equally few.
 */
function suggestKey(key: string, known: readonly string[]): string | null {
  const maxDistance = Math.max(2, Math.floor(key.length / 5));
  const candidatesByDistance = known
    .map((name) => ({ name, distance: editDistance(key.toLowerCase().replaceAll('"', ''), name) }))
    .filter(({ name, distance }) => distance <= maxDistance && distance < name.length / 2)
    .sort((a, b) => a.distance - b.distance);
  if (candidatesByDistance[0] !== undefined) return candidatesByDistance[0].name;
  const last = key.slice(key.lastIndexOf('.') + 1);
  const depth = (name: string): number => name.split('.').length;
  const sameName = known.filter((name) => name.endsWith(`.${last}`)).sort((a, b) => depth(a) - depth(b));
  const [first, second] = sameName;
  return first !== undefined && (second === undefined || depth(first) < depth(second)) ? first : null;
}
