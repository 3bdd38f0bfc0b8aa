import { fail } from './error.ts';
import type { ListNode, Node, ObjectNode, Scalar } from './node.ts';
import type { Origin } from './value.ts';

/** An object known by the literals it is merged from, a later one over an earlier one; its fields are not resolved. */
export interface Layers {
  readonly kind: 'layers';
  readonly origin: Origin;
  readonly layers: readonly ObjectNode[];
}

/** A value whose kind is known while what it holds may not be resolved yet. */
export type Head = Scalar | ListNode | Layers;

/** A value in a concatenation; a null head is an optional substitution without a value. */
export interface Piece {
  readonly space: string;
  readonly origin: Origin;
  readonly head: Head | null;
}

/** Joins values that stand side by side; null if none of them is there. Mixed kinds are an error at the odd one. */
export function join(origin: Origin, pieces: readonly Piece[]): Head | null {
  const heads = pieces.map((piece) => piece.head).filter((head) => head !== null);
  const first = heads[0];
  if (first === undefined) return null;
  for (const { head, origin } of pieces) if (head !== null) checkJoin(first, head, origin);
  if (first.kind === 'layers') {
    return { kind: 'layers', origin, layers: heads.flatMap((head) => (head.kind === 'layers' ? head.layers : [])) };
  }
  if (first.kind === 'items') {
    return { kind: 'items', origin, items: heads.flatMap((head) => (head.kind === 'items' ? head.items : [])) };
  }
  return { kind: 'string', origin, text: pieces.map(({ space, head }) => space + textOf(head)).join('') };
}

/** Fails at `origin` unless the two can stand side by side. */
export function checkJoin(first: Head | Node, other: Head | Node, origin: Origin): void {
  if (family(first) === family(other)) return;
  fail(
    origin,
    `Cannot join ${kindName(first)} and ${kindName(other)}: only text with text, arrays with arrays and objects with objects can stand side by side.`,
  );
}

/** The text of a scalar in a concatenation; nothing for what is not there. */
export function textOf(head: Head | Node | null): string {
  if (head === null) return '';
  if (head.kind === 'string' || head.kind === 'number') return head.text;
  if (head.kind === 'boolean') return String(head.value);
  return head.kind === 'null' ? 'null' : '';
}

/** The kind of a value with its article, for a sentence. */
export function kindName({ kind }: Head | Node): string {
  if (kind === 'items' || kind === 'append') return 'an array';
  if (kind === 'layers' || kind === 'fields') return 'an object';
  return kind === 'null' ? 'null' : `a ${kind}`;
}

function family({ kind }: Head | Node): string {
  if (kind === 'items') return 'array';
  return kind === 'layers' || kind === 'fields' ? 'object' : 'text';
}
