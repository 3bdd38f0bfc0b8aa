import type { BooleanValue, NullValue, NumberValue, Origin, StringValue } from './value.ts';

/** A value that is neither an object nor an array. */
export type Scalar = StringValue | NumberValue | BooleanValue | NullValue;

/** An object as written, or merged from several. A later definition of a key overrides an earlier one. */
export interface ObjectNode {
  readonly kind: 'fields';
  origin: Origin;
  readonly fields: Map<string, Node[]>;
}

/** An array whose items are not resolved yet. */
export interface ListNode {
  readonly kind: 'items';
  readonly origin: Origin;
  readonly items: readonly Node[];
}

/** A scope for the look-up of paths: the document, or the position of an included file in it. */
export interface LookupScope {
  readonly root: ObjectNode;
  readonly path: readonly string[];
}

/** `${path}` or `${?path}`; the path is tried in each scope in turn, then in the environment. */
export interface Substitution {
  readonly kind: 'substitution';
  readonly origin: Origin;
  readonly path: readonly string[];
  readonly optional: boolean;
  readonly enclosingScopes: readonly LookupScope[];
}

/** One of several adjacent values, and the white space before it. */
export interface ConcatenationPart {
  readonly spaceBefore: string;
  readonly node: Node;
}

/** Adjacent values: texts and arrays are joined, objects are merged. */
export interface Concatenation {
  readonly kind: 'concatenation';
  readonly origin: Origin;
  readonly parts: readonly ConcatenationPart[];
}

/** An addition to an array: `key += item`. */
interface AppendNode {
  readonly kind: 'append';
  readonly origin: Origin;
  readonly item: Node;
}

/** The result of the parser, which the resolver turns into values. */
export type Node = Scalar | ObjectNode | ListNode | Substitution | Concatenation | AppendNode;

/** Adds a definition at a path of keys; `origin` is the position of the key. */
export function addDefinition(target: ObjectNode, path: readonly string[], origin: Origin, node: Node): void {
  let value = node;
  for (const key of path.slice(1).reverse()) value = { kind: 'fields', origin, fields: new Map([[key, [value]]]) };
  if (path[0] !== undefined) defineKey(target, path[0], value);
}

function defineKey(target: ObjectNode, key: string, node: Node): void {
  const stack = target.fields.get(key);
  const top = stack?.at(-1);
  if (top?.kind === 'fields' && node.kind === 'fields') {
    top.origin = node.origin;
    for (const [name, nodes] of node.fields) for (const child of nodes) defineKey(top, name, child);
  } else if (stack !== undefined && dependsOnEarlier(node)) {
    stack.push(node);
  } else {
    target.fields.set(key, [node]);
  }
}

/**
 * Whether an earlier definition of the same key still matters. Text, numbers and plain arrays replace it completely.
 */
function dependsOnEarlier(node: Node): boolean {
  return (
    node.kind === 'fields' || node.kind === 'substitution' || node.kind === 'concatenation' || node.kind === 'append'
  );
}
