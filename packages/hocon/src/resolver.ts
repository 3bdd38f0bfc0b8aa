import {
  type Definition,
  type Head,
  indexKeys,
  type Items,
  join,
  kindName,
  type Layer,
  type Layers,
  textOf,
} from './concatenation.ts';
import { fail, HoconError, type Problem, type Sentence } from './error.ts';
import type { Concatenation, Node, ObjectNode, Substitution } from './node.ts';
import type { ObjectValue, Origin, Value } from './value.ts';

/** Stands for a value that a reported problem left without one, so that nothing more is said about what uses it. */
const BROKEN: Head = { kind: 'null', origin: { file: '', line: 1, column: 1 } };

/** What substitutions fall back to, and how far they may expand. */
interface ResolveOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly maxDepth: number;
  readonly maxNodes: number;
}

/**
 * Turns a document into values. Throws a HoconError with all substitutions that have no value, or at once for a
 * bound exceeded or kinds that cannot be joined.
 *
 * Two stages, which is what lets an object refer to itself: the head of a value (its kind, for an object the literals
 * it is merged from) is found without looking into what it holds; only then are the held values resolved in turn.
 */
export function resolve(root: ObjectNode, options: ResolveOptions): ObjectValue {
  return new Resolver(options).resolve(root);
}

class Resolver {
  readonly #options: ResolveOptions;
  readonly #problems = new Map<Substitution, Problem>();
  /** One answer per occurrence of a substitution, as the specification demands. */
  readonly #heads = new Map<Substitution, Head | null>();
  /** Definitions whose head is being found; to come back to one of them is a cycle or a look back. */
  readonly #open = new Set<Node>();
  #innermost: Node | null = null;
  /** Substitutions whose value is being written out; to meet one again in there would never end. */
  readonly #expanding = new Set<Substitution>();
  /** Optional substitutions that were met within their own value: they have no value. */
  readonly #recursive = new Set<Substitution>();
  /** Where the last look-up went round in a circle. */
  #circle: readonly Node[] = [];
  #depth = 0;
  #spent = 0;

  constructor(options: ResolveOptions) {
    this.#options = options;
  }

  resolve(root: ObjectNode): ObjectValue {
    const { origin } = root;
    try {
      const value = {
        kind: 'object',
        origin,
        entries: this.#entries({ kind: 'layers', origin, layers: [root] }),
      } as const;
      if (this.#problems.size === 0) return value;
    } catch (error) {
      if (!(error instanceof HoconError)) throw error;
      throw new HoconError([...this.#problems.values(), ...error.problems]);
    }
    throw new HoconError([...this.#problems.values()]);
  }

  /** The whole value of a key or item with these definitions; null: it has none. */
  #expand(definitions: readonly Definition[]): Value | null {
    const used: Substitution[] = [];
    const head = this.#merge(definitions, used);
    if (head === null) return null;
    for (const substitution of used) this.#expanding.add(substitution);
    const value = this.#value(head);
    for (const substitution of used) this.#expanding.delete(substitution);
    const recursive = used.filter((each) => this.#recursive.has(each) && this.#heads.get(each) !== null);
    if (recursive.length === 0) return value;
    // The value was written out before it turned out to hold its own substitution: write it again without.
    for (const substitution of recursive) this.#heads.set(substitution, null);
    return this.#expand(definitions);
  }

  #value(head: Head): Value {
    // Long texts count more than once, so that doubling a text is bounded like doubling an array.
    this.#spend(1 + (textOf(head).length >> 6), head.origin);
    if (head.kind === 'items') return { kind: 'array', origin: head.origin, items: this.#items(head) };
    if (head.kind === 'layers') return { kind: 'object', origin: head.origin, entries: this.#entries(head) };
    return head;
  }

  #items(list: Items): Value[] {
    return this.#deeper(list.origin, () =>
      list.items.map((item) => this.#expand([item])).filter((item) => item !== null),
    );
  }

  #entries(object: Layers): Map<string, Value> {
    return this.#deeper(object.origin, () => {
      const entries = new Map<string, Value>();
      for (const key of this.#keys(object.layers)) {
        const value = this.#expand(this.#definitions(object, key));
        if (value !== null) entries.set(key, value);
      }
      return entries;
    });
  }

  #keys(layers: readonly Layer[], keys = new Set<string>()): Set<string> {
    for (const layer of layers) {
      if (layer.kind === 'isolated') {
        this.#keys(layer.layers, keys);
        continue;
      }
      this.#spend(layer.fields.size, layer.origin);
      for (const key of layer.fields.keys()) keys.add(key);
    }
    return keys;
  }

  #definitions({ origin, layers }: Layers, key: string): Definition[] {
    this.#spend(layers.length, origin);
    const definitions: Definition[] = [];
    for (const layer of layers) {
      if (layer.kind === 'isolated') {
        const inner = this.#definitions({ kind: 'layers', origin, layers: layer.layers }, key);
        if (inner.length > 0) definitions.push({ kind: 'isolated', definitions: inner });
        continue;
      }
      const added = layer.fields.get(key) ?? [];
      this.#spend(added.length, layer.origin);
      for (const node of added) definitions.push(node);
    }
    return definitions;
  }

  /** An object whose keys are positions, as an array; anything else as it is. */
  #asItems(head: Head): Head {
    if (head.kind !== 'layers') return head;
    const keys = indexKeys(this.#keys(head.layers));
    if (keys.length === 0) return head;
    const items = keys.map((key) => ({ kind: 'isolated', definitions: this.#definitions(head, key) }) as const);
    return { kind: 'items', origin: head.origin, items };
  }

  /**
   * The head of a key with these definitions, read from the last one down as far as earlier ones still show.
   * `used` collects the substitutions that it is made of; it is null for a mere look-up.
   */
  #merge(definitions: readonly Definition[], used: Substitution[] | null): Head | null {
    const layers: Layer[][] = [];
    const appended: Node[] = [];
    let origin: Origin | null = null;
    for (let index = this.#visible(definitions) - 1; index >= 0; index--) {
      const node = definitions[index];
      if (node === undefined || (node.kind === 'append' && layers.length > 0)) break;
      if (node.kind === 'append') {
        appended.push(node.item);
        origin ??= node.origin;
        continue;
      }
      const head = this.#opened(node, used);
      if (head === null) continue;
      if (appended.length > 0) return this.#append(head, appended, origin ?? head.origin);
      if (head.kind !== 'layers') {
        if (layers.length === 0) return head;
        break;
      }
      this.#spend(head.layers.length, head.origin);
      layers.push([...head.layers]);
      origin ??= head.origin;
    }
    if (origin === null) return null;
    if (appended.length > 0) return { kind: 'items', origin, items: appended.reverse() };
    return { kind: 'layers', origin, layers: layers.reverse().flat() };
  }

  #append(before: Head, appended: Node[], origin: Origin): Head {
    if (before === BROKEN) return before;
    const head = this.#asItems(before);
    if (head.kind !== 'items') fail(origin, `+= adds an item to an array, but the value so far is ${kindName(head)}.`);
    this.#spend(head.items.length, origin);
    return { kind: 'items', origin, items: [...head.items, ...appended.reverse()] };
  }

  /**
   * How many of the definitions may be looked at. A definition that refers to its own key sees the earlier ones only;
   * one that comes back to itself by way of another key sees nothing, since the answer would hang on where one began.
   */
  #visible(definitions: readonly Definition[]): number {
    const found = definitions.map((definition) => this.#openWithin(definition));
    const index = found.findIndex((node) => node !== null);
    if (index < 0) return definitions.length;
    const open = [...this.#open];
    const node = found[index];
    this.#circle = open.slice(open.findIndex((other) => other === node));
    if (node !== this.#innermost) return 0;
    // Isolated definitions hide what of them may not be seen when they are merged in turn.
    return definitions[index]?.kind === 'isolated' ? index + 1 : index;
  }

  #openWithin(definition: Definition): Node | null {
    if (definition.kind !== 'isolated') return this.#open.has(definition) ? definition : null;
    for (const inner of definition.definitions) {
      const node = this.#openWithin(inner);
      if (node !== null) return node;
    }
    return null;
  }

  #opened(node: Definition, used: Substitution[] | null): Head | null {
    if (node.kind === 'isolated') return isolate(this.#merge(node.definitions, used));
    if (node.kind !== 'substitution' && node.kind !== 'concatenation') return this.#head(node, used);
    const outer = this.#innermost;
    this.#open.add(node);
    this.#innermost = node;
    const head = this.#deeper(node.origin, () => this.#head(node, used));
    this.#open.delete(node);
    this.#innermost = outer;
    return head;
  }

  #head(node: Node, used: Substitution[] | null): Head | null {
    if (node.kind === 'substitution') return this.#substituted(node, used);
    if (node.kind === 'concatenation') return this.#joined(node, used);
    if (node.kind === 'fields') return { kind: 'layers', origin: node.origin, layers: [node] };
    return node.kind === 'append' ? { kind: 'items', origin: node.origin, items: [node.item] } : node;
  }

  #joined(node: Concatenation, used: Substitution[] | null): Head | null {
    const pieces = node.parts.map((part) => {
      const head = this.#head(part.node, used);
      this.#spend(head === null ? 1 : size(head), part.node.origin);
      return { space: part.space, origin: part.node.origin, head };
    });
    if (pieces.some(({ head }) => head === BROKEN)) return BROKEN;
    if (!pieces.some(({ head }) => head?.kind === 'items')) return join(node.origin, pieces);
    return join(
      node.origin,
      pieces.map((piece) => ({ ...piece, head: piece.head === null ? null : this.#asItems(piece.head) })),
    );
  }

  #substituted(node: Substitution, used: Substitution[] | null): Head | null {
    if (used !== null && this.#expanding.has(node)) {
      if (node.optional) {
        this.#recursive.add(node);
        return null;
      }
      return this.#report(node, 'would have to contain itself: the value it stands for holds this very place.');
    }
    used?.push(node);
    const known = this.#heads.get(node);
    if (known !== undefined) return known;
    const outer = this.#circle;
    this.#circle = [];
    const found = this.#lookUp(node);
    const head = found !== null || node.optional ? isolate(found) : this.#report(node, this.#whyMissing(node));
    this.#circle = outer;
    this.#heads.set(node, head);
    return head;
  }

  #lookUp(node: Substitution): Head | null {
    for (const scope of node.scopes) {
      const head = this.#find(scope.root, [...scope.path, ...node.path]);
      if (head !== null) return head;
    }
    const name = node.path.join('.');
    const text = Object.hasOwn(this.#options.env, name) ? this.#options.env[name] : undefined;
    return text === undefined ? null : { kind: 'string', origin: node.origin, text };
  }

  #find(root: ObjectNode, path: readonly string[]): Head | null {
    let head: Head = { kind: 'layers', origin: root.origin, layers: [root] };
    for (const key of path) {
      const next: Head | null = head.kind === 'layers' ? this.#merge(this.#definitions(head, key), null) : null;
      if (next === null) return null;
      head = next;
    }
    return head;
  }

  #report(node: Substitution, rest: Sentence): Head {
    const sentence: Sentence = (quote) =>
      `\${${quote(node.path.join('.'))}} ${typeof rest === 'string' ? rest : rest(quote)}`;
    this.#problems.set(node, { origin: node.origin, sentence });
    return BROKEN;
  }

  #whyMissing(node: Substitution): Sentence {
    if (this.#circle.length === 0) {
      return (quote) =>
        `is not defined, neither as a key nor as an environment variable; define it, or write \${?${quote(node.path.join('.'))}} where it may be missing.`;
    }
    if (this.#circle.length === 1) return 'refers to the key it is a value of, and that key has no earlier value.';
    const places = this.#circle.map(({ origin }) => `${origin.file}:${origin.line}`).slice(0, 10);
    return `leads back to itself by way of ${places.join(', ')}; give one of these keys a value of its own.`;
  }

  #deeper<T>(origin: Origin, work: () => T): T {
    if (++this.#depth > this.#options.maxDepth) {
      fail(origin, `Values and substitutions lead more than ${this.#options.maxDepth} levels deep here.`);
    }
    const result = work();
    this.#depth--;
    return result;
  }

  #spend(nodes: number, origin: Origin): void {
    this.#spent += nodes;
    if (this.#spent > this.#options.maxNodes) {
      fail(
        origin,
        `The configuration grows beyond ${this.#options.maxNodes} values here; look for substitutions that multiply.`,
      );
    }
  }
}

/** The value of a substitution, so that a `+=` in it stays within it. */
function isolate(head: Head | null): Head | null {
  if (head?.kind !== 'layers' || (head.layers.length === 1 && head.layers[0]?.kind === 'isolated')) return head;
  return { ...head, layers: [{ kind: 'isolated', layers: head.layers }] };
}

function size(head: Head): number {
  if (head.kind === 'layers') return head.layers.length;
  return head.kind === 'items' ? head.items.length : 1 + (textOf(head).length >> 6);
}
