import { fail } from './error.ts';
import type { ListNode, Node, ObjectNode, Scalar } from './node.ts';
import type { Origin } from './value.ts';

/**
 * The layers (object literals) that a substitution adds to another object. A `+=` inside appends only to a value within
 * these layers, and never to one of the object that they are merged over.
 */
interface LayersIsolatingAppends {
  readonly kind: 'isolated';
  readonly layers: readonly ObjectLayer[];
}

export type ObjectLayer = ObjectNode | LayersIsolatingAppends;

/**
 * An object as the list of the object literals that it merges; later literals override earlier ones. Its fields are not
 * resolved.
 */
export interface LayeredObject {
  readonly kind: 'layers';
  readonly origin: Origin;
  readonly layers: readonly ObjectLayer[];
}

/**
 * The definitions of one key in the object of a substitution: a `+=` among them appends only to values within that
 * object.
 */
interface DefinitionsIsolatingAppends {
  readonly kind: 'isolated';
  readonly definitions: readonly Definition[];
}

export type Definition = Node | DefinitionsIsolatingAppends;

/** An array whose items are not resolved yet. */
export interface UnresolvedArray extends Omit<ListNode, 'items'> {
  readonly items: readonly Definition[];
}

/** A value with a known kind, whose contents may not be resolved yet. */
export type ShallowValue = Scalar | UnresolvedArray | LayeredObject;

/** A part of a concatenation. `partValue` is null for an optional substitution without a value. */
interface ResolvedPart {
  readonly spaceBefore: string;
  readonly origin: Origin;
  readonly partValue: ShallowValue | null;
}

/** Joins adjacent values; null if no part has a value. Mixed kinds are an error at the first part that differs. */
export function joinPieces(origin: Origin, pieces: readonly ResolvedPart[]): ShallowValue | null {
  const heads = pieces.map((piece) => piece.partValue).filter((head) => head !== null);
  const first = heads[0];
  if (first === undefined) return null;
  for (const { partValue: head, origin } of pieces) if (head !== null) requireJoinable(first, head, origin);
  if (first.kind === 'layers') {
    return { kind: 'layers', origin, layers: heads.flatMap((head) => (head.kind === 'layers' ? head.layers : [])) };
  }
  if (first.kind === 'items') {
    return { kind: 'items', origin, items: heads.flatMap((head) => (head.kind === 'items' ? head.items : [])) };
  }
  return {
    kind: 'string',
    origin,
    text: pieces.map(({ spaceBefore, partValue: head }) => spaceBefore + concatenationText(head)).join(''),
  };
}

/**
 * The keys of an object that are positions in an array, in ascending order; other keys are left out. Where an array is
 * needed, the specification reads an object with such keys as an array.
 */
export function sortedIndexKeys(keys: Iterable<string>): string[] {
  return [...keys].filter((key) => /^\d{1,9}$/.test(key)).sort((a, b) => Number(a) - Number(b));
}

/** Fails at `origin` unless the two values can be adjacent. */
export function requireJoinable(first: ShallowValue | Node, other: ShallowValue | Node, origin: Origin): void {
  if (joinFamily(first) === joinFamily(other)) return;
  if (isArrayOrIndexed(first) && isArrayOrIndexed(other)) return;
  fail(
    origin,
    `Cannot join ${kindWithArticle(first)} and ${kindWithArticle(other)}: only text with text, arrays with arrays and objects with objects can stand side by side.`,
  );
}

/** The text of a scalar in a concatenation; empty for a missing value. */
export function concatenationText(head: ShallowValue | Node | null): string {
  if (head === null) return '';
  if (head.kind === 'string' || head.kind === 'number') return head.text;
  if (head.kind === 'boolean') return String(head.value);
  return head.kind === 'null' ? 'null' : '';
}

/** The kind of a value with its article, for error messages. */
export function kindWithArticle({ kind }: ShallowValue | Node): string {
  if (kind === 'items' || kind === 'append') return 'an array';
  if (kind === 'layers' || kind === 'fields') return 'an object';
  return kind === 'null' ? 'null' : `a ${kind}`;
}

/** Whether a value is an array, or an object literal with positions as keys. */
function isArrayOrIndexed(value: ShallowValue | Node): boolean {
  return value.kind === 'items' || (value.kind === 'fields' && sortedIndexKeys(value.fields.keys()).length > 0);
}

function joinFamily({ kind }: ShallowValue | Node): string {
  if (kind === 'items') return 'array';
  return kind === 'layers' || kind === 'fields' ? 'object' : 'text';
}
