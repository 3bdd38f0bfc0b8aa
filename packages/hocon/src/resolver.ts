import {
  type Definition,
  type ShallowValue,
  sortedIndexKeys,
  type UnresolvedArray,
  joinPieces,
  kindWithArticle,
  type ObjectLayer,
  type LayeredObject,
  concatenationText,
} from './concatenation.ts';
import { fail, HoconError, type Problem, type Sentence } from './error.ts';
import type { Concatenation, Node, ObjectNode, Substitution } from './node.ts';
import type { ObjectValue, Origin, Value } from './value.ts';

/**
 * Stands for the value of a substitution with a reported problem, so that values that depend on it report no further
 * problems.
 */
const UNRESOLVABLE: ShallowValue = { kind: 'null', origin: { file: '', line: 1, column: 1 } };

/** The fallback of substitutions, and the bounds of their expansion. */
interface ResolveOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly maxDepth: number;
  readonly maxResolvedNodes: number;
}

/**
 * Turns a document into values. Throws one HoconError for all substitutions that have no value. Throws at once for an
 * exceeded bound, and for kinds that cannot be joined.
 *
 * It has two stages, so that an object can refer to itself. The first finds the shallow value: its kind, and for an
 * object the literals that it merges, but not its contents. The second resolves the contents in turn.
 */
export function resolve(root: ObjectNode, options: ResolveOptions): ObjectValue {
  return new Resolver(options).resolve(root);
}

class Resolver {
  readonly #options: ResolveOptions;
  readonly #problems = new Map<Substitution, Problem>();
  /**
   * The shallow value (kind without contents) of each occurrence of a substitution: by the specification, an occurrence
   * has only one value.
   */
  readonly #shallowBySubstitution = new Map<Substitution, ShallowValue | null>();
  /**
   * The definitions whose shallow value is being found. A second visit to one of them is a cycle, or a reference to an
   * earlier definition.
   */
  readonly #nodesInProgress = new Set<Node>();
  #innermostInProgress: Node | null = null;
  /** The substitutions whose value is being expanded. A second expansion inside the first would never end. */
  readonly #expanding = new Set<Substitution>();
  /** Optional substitutions that occur within their own value. They have no value. */
  readonly #optionalSelfReferences = new Set<Substitution>();
  /** The cycle that the last look-up found; empty if there was none. */
  #lastCycle: readonly Node[] = [];
  #depth = 0;
  #countedNodes = 0;

  constructor(options: ResolveOptions) {
    this.#options = options;
  }

  resolve(root: ObjectNode): ObjectValue {
    const { origin } = root;
    try {
      const value = {
        kind: 'object',
        origin,
        entries: this.#resolveEntries({ kind: 'layers', origin, layers: [root] }),
      } as const;
      if (this.#problems.size === 0) return value;
    } catch (error) {
      if (!(error instanceof HoconError)) throw error;
      throw new HoconError([...this.#problems.values(), ...error.problems]);
    }
    throw new HoconError([...this.#problems.values()]);
  }

  /** The complete value of a key or item with these definitions; null if it has none. */
  #resolveDefinitions(definitions: readonly Definition[]): Value | null {
    const used: Substitution[] = [];
    const head = this.#mergeDefinitions(definitions, used);
    if (head === null) return null;
    for (const substitution of used) this.#expanding.add(substitution);
    const value = this.#toFullValue(head);
    for (const substitution of used) this.#expanding.delete(substitution);
    const optionalSelfReferences = used.filter(
      (each) => this.#optionalSelfReferences.has(each) && this.#shallowBySubstitution.get(each) !== null,
    );
    if (optionalSelfReferences.length === 0) return value;
    // The expansion showed that the value contains its own optional substitutions. They have no value, so it is
    // expanded again without them.
    for (const substitution of optionalSelfReferences) this.#shallowBySubstitution.set(substitution, null);
    return this.#resolveDefinitions(definitions);
  }

  #toFullValue(head: ShallowValue): Value {
    // A long text counts as several nodes, so that substitutions that double a text reach the bound like those that
    // double an array.
    this.#countNodes(1 + (concatenationText(head).length >> 6), head.origin);
    if (head.kind === 'items') return { kind: 'array', origin: head.origin, items: this.#resolveItems(head) };
    if (head.kind === 'layers') return { kind: 'object', origin: head.origin, entries: this.#resolveEntries(head) };
    return head;
  }

  #resolveItems(list: UnresolvedArray): Value[] {
    return this.#withDepth(list.origin, () =>
      list.items.map((item) => this.#resolveDefinitions([item])).filter((item) => item !== null),
    );
  }

  #resolveEntries(object: LayeredObject): Map<string, Value> {
    return this.#withDepth(object.origin, () => {
      const entries = new Map<string, Value>();
      for (const key of this.#keysOfLayers(object.layers)) {
        const value = this.#resolveDefinitions(this.#definitionsOf(object, key));
        if (value !== null) entries.set(key, value);
      }
      return entries;
    });
  }

  #keysOfLayers(layers: readonly ObjectLayer[], keys = new Set<string>()): Set<string> {
    for (const layer of layers) {
      if (layer.kind === 'isolated') {
        this.#keysOfLayers(layer.layers, keys);
        continue;
      }
      this.#countNodes(layer.fields.size, layer.origin);
      for (const key of layer.fields.keys()) keys.add(key);
    }
    return keys;
  }

  #definitionsOf({ origin, layers }: LayeredObject, key: string): Definition[] {
    this.#countNodes(layers.length, origin);
    const definitions: Definition[] = [];
    for (const layer of layers) {
      if (layer.kind === 'isolated') {
        const inner = this.#definitionsOf({ kind: 'layers', origin, layers: layer.layers }, key);
        if (inner.length > 0) definitions.push({ kind: 'isolated', definitions: inner });
        continue;
      }
      const added = layer.fields.get(key) ?? [];
      this.#countNodes(added.length, layer.origin);
      for (const node of added) definitions.push(node);
    }
    return definitions;
  }

  /** Returns an object whose keys are positions as an array, and any other value unchanged. */
  #asItemsIfIndexed(head: ShallowValue): ShallowValue {
    if (head.kind !== 'layers') return head;
    const keys = sortedIndexKeys(this.#keysOfLayers(head.layers));
    if (keys.length === 0) return head;
    const items = keys.map((key) => ({ kind: 'isolated', definitions: this.#definitionsOf(head, key) }) as const);
    return { kind: 'items', origin: head.origin, items };
  }

  /**
   * The shallow value of a key with these definitions. Reads the definitions backwards from the last one, as far as
   * earlier ones matter. `used` collects their substitutions; it is null if only a look-up needs the shallow value.
   */
  #mergeDefinitions(definitions: readonly Definition[], used: Substitution[] | null): ShallowValue | null {
    const layers: ObjectLayer[][] = [];
    const appended: Node[] = [];
    let origin: Origin | null = null;
    for (let index = this.#visibleCount(definitions) - 1; index >= 0; index--) {
      const node = definitions[index];
      if (node === undefined || (node.kind === 'append' && layers.length > 0)) break;
      if (node.kind === 'append') {
        appended.push(node.item);
        origin ??= node.origin;
        continue;
      }
      const head = this.#toShallowTracked(node, used);
      if (head === null) continue;
      if (appended.length > 0) return this.#appendItems(head, appended, origin ?? head.origin);
      if (head.kind !== 'layers') {
        if (layers.length === 0) return head;
        break;
      }
      this.#countNodes(head.layers.length, head.origin);
      layers.push([...head.layers]);
      origin ??= head.origin;
    }
    if (origin === null) return null;
    if (appended.length > 0) return { kind: 'items', origin, items: appended.reverse() };
    return { kind: 'layers', origin, layers: layers.reverse().flat() };
  }

  #appendItems(before: ShallowValue, appended: Node[], origin: Origin): ShallowValue {
    if (before === UNRESOLVABLE) return before;
    const head = this.#asItemsIfIndexed(before);
    if (head.kind !== 'items')
      fail(origin, `+= adds an item to an array, but the value so far is ${kindWithArticle(head)}.`);
    this.#countNodes(head.items.length, origin);
    return { kind: 'items', origin, items: [...head.items, ...appended.reverse()] };
  }

  /**
   * The number of definitions that a look-up may use:
   * - A definition that refers to its own key sees only the earlier ones.
   * - A definition that returns to itself through another key sees none. Otherwise the answer would depend on the key
   *   at which the look-up began.
   */
  #visibleCount(definitions: readonly Definition[]): number {
    const found = definitions.map((definition) => this.#findInProgress(definition));
    const index = found.findIndex((node) => node !== null);
    if (index < 0) return definitions.length;
    const nodesInProgress = [...this.#nodesInProgress];
    const node = found[index];
    this.#lastCycle = nodesInProgress.slice(nodesInProgress.findIndex((other) => other === node));
    if (node !== this.#innermostInProgress) return 0;
    // An isolated definition counts as visible: `#mergeDefinitions` applies the same rule to the definitions inside it.
    return definitions[index]?.kind === 'isolated' ? index + 1 : index;
  }

  #findInProgress(definition: Definition): Node | null {
    if (definition.kind !== 'isolated') return this.#nodesInProgress.has(definition) ? definition : null;
    for (const inner of definition.definitions) {
      const node = this.#findInProgress(inner);
      if (node !== null) return node;
    }
    return null;
  }

  #toShallowTracked(node: Definition, used: Substitution[] | null): ShallowValue | null {
    if (node.kind === 'isolated') return isolateAppends(this.#mergeDefinitions(node.definitions, used));
    if (node.kind !== 'substitution' && node.kind !== 'concatenation') return this.#toShallow(node, used);
    const outer = this.#innermostInProgress;
    this.#nodesInProgress.add(node);
    this.#innermostInProgress = node;
    const head = this.#withDepth(node.origin, () => this.#toShallow(node, used));
    this.#nodesInProgress.delete(node);
    this.#innermostInProgress = outer;
    return head;
  }

  #toShallow(node: Node, used: Substitution[] | null): ShallowValue | null {
    if (node.kind === 'substitution') return this.#resolveSubstitution(node, used);
    if (node.kind === 'concatenation') return this.#joinParts(node, used);
    if (node.kind === 'fields') return { kind: 'layers', origin: node.origin, layers: [node] };
    return node.kind === 'append' ? { kind: 'items', origin: node.origin, items: [node.item] } : node;
  }

  #joinParts(node: Concatenation, used: Substitution[] | null): ShallowValue | null {
    const pieces = node.parts.map((part) => {
      const partValue = this.#toShallow(part.node, used);
      this.#countNodes(partValue === null ? 1 : nodeCost(partValue), part.node.origin);
      return { spaceBefore: part.spaceBefore, origin: part.node.origin, partValue };
    });
    if (pieces.some(({ partValue }) => partValue === UNRESOLVABLE)) return UNRESOLVABLE;
    if (!pieces.some(({ partValue }) => partValue?.kind === 'items')) return joinPieces(node.origin, pieces);
    return joinPieces(
      node.origin,
      pieces.map((piece) => ({
        ...piece,
        partValue: piece.partValue === null ? null : this.#asItemsIfIndexed(piece.partValue),
      })),
    );
  }

  #resolveSubstitution(node: Substitution, used: Substitution[] | null): ShallowValue | null {
    if (used !== null && this.#expanding.has(node)) {
      if (node.optional) {
        this.#optionalSelfReferences.add(node);
        return null;
      }
      return this.#reportProblem(node, 'would have to contain itself: the value it stands for holds this very place.');
    }
    used?.push(node);
    const known = this.#shallowBySubstitution.get(node);
    if (known !== undefined) return known;
    const outer = this.#lastCycle;
    this.#lastCycle = [];
    const found = this.#lookUpInScopesOrEnv(node);
    const head =
      found !== null || node.optional ? isolateAppends(found) : this.#reportProblem(node, this.#whyMissing(node));
    this.#lastCycle = outer;
    this.#shallowBySubstitution.set(node, head);
    return head;
  }

  #lookUpInScopesOrEnv(node: Substitution): ShallowValue | null {
    for (const scope of node.enclosingScopes) {
      const head = this.#findAtPath(scope.root, [...scope.path, ...node.path]);
      if (head !== null) return head;
    }
    const name = node.path.join('.');
    const text = Object.hasOwn(this.#options.env, name) ? this.#options.env[name] : undefined;
    return text === undefined ? null : { kind: 'string', origin: node.origin, text };
  }

  #findAtPath(root: ObjectNode, path: readonly string[]): ShallowValue | null {
    let head: ShallowValue = { kind: 'layers', origin: root.origin, layers: [root] };
    for (const key of path) {
      const next: ShallowValue | null =
        head.kind === 'layers' ? this.#mergeDefinitions(this.#definitionsOf(head, key), null) : null;
      if (next === null) return null;
      head = next;
    }
    return head;
  }

  #reportProblem(node: Substitution, rest: Sentence): ShallowValue {
    const sentence: Sentence = (quote) =>
      `\${${quote(node.path.join('.'))}} ${typeof rest === 'string' ? rest : rest(quote)}`;
    this.#problems.set(node, { origin: node.origin, sentence });
    return UNRESOLVABLE;
  }

  #whyMissing(node: Substitution): Sentence {
    if (this.#lastCycle.length === 0) {
      return (quote) =>
        `is not defined, neither as a key nor as an environment variable; define it, or write \${?${quote(node.path.join('.'))}} where it may be missing.`;
    }
    if (this.#lastCycle.length === 1) return 'refers to the key it is a value of, and that key has no earlier value.';
    const places = this.#lastCycle.map(({ origin }) => `${origin.file}:${origin.line}`).slice(0, 10);
    return `leads back to itself by way of ${places.join(', ')}; give one of these keys a value of its own.`;
  }

  #withDepth<T>(origin: Origin, work: () => T): T {
    if (++this.#depth > this.#options.maxDepth) {
      fail(origin, `Values and substitutions lead more than ${this.#options.maxDepth} levels deep here.`);
    }
    const result = work();
    this.#depth--;
    return result;
  }

  #countNodes(nodes: number, origin: Origin): void {
    this.#countedNodes += nodes;
    if (this.#countedNodes > this.#options.maxResolvedNodes) {
      fail(
        origin,
        `The configuration grows beyond ${this.#options.maxResolvedNodes} values here; look for substitutions that multiply.`,
      );
    }
  }
}

/** Isolates the value of a substitution, so that a `+=` in it appends only within that value. */
function isolateAppends(head: ShallowValue | null): ShallowValue | null {
  if (head?.kind !== 'layers' || (head.layers.length === 1 && head.layers[0]?.kind === 'isolated')) return head;
  return { ...head, layers: [{ kind: 'isolated', layers: head.layers }] };
}

function nodeCost(head: ShallowValue): number {
  if (head.kind === 'layers') return head.layers.length;
  return head.kind === 'items' ? head.items.length : 1 + (concatenationText(head).length >> 6);
}
