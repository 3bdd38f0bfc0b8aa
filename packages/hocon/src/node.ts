import type { BooleanValue, NullValue, NumberValue, Origin, StringValue } from './value.ts';

/** A value that holds no others. */
export type Scalar = StringValue | NumberValue | BooleanValue | NullValue;

/** An object as written, or merged from several: each key has its definitions, a later one over an earlier one. */
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

/** A place that paths are looked up from: the document, or an included file's place in it. */
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

/** One of several values that stand side by side, and the white space before it. */
export interface ConcatenationPart {
  readonly spaceBefore: string;
  readonly node: Node;
}

/** Values side by side: text is joined, arrays are joined, objects are merged. */
export interface Concatenation {
  readonly kind: 'concatenation';
  readonly origin: Origin;
  readonly parts: readonly ConcatenationPart[];
}

/** `key += item` */
interface AppendNode {
  readonly kind: 'append';
  readonly origin: Origin;
  readonly item: Node;
}

/** What the parser makes and the resolver turns into values. */
export type Node = Scalar | ObjectNode | ListNode | Substitution | Concatenation | AppendNode;

/** Adds a definition below a path of keys; `origin` is where the key stands. */
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

/** Whether an earlier definition of the same key can still show: text, numbers and plain arrays hide it for good. */
function dependsOnEarlier(node: Node): boolean {
  return (
    node.kind === 'fields' || node.kind === 'substitution' || node.kind === 'concatenation' || node.kind === 'append'
  );
}
