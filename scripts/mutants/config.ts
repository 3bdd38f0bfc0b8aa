import type { Mutant } from './mutant.ts';

/** What HOCON means, what of a configuration is shown, and what of others' text reaches a terminal. */
export const CONFIG_MUTANTS: readonly Mutant[] = [
  {
    name: 'hocon-append-leaks',
    promise: 'A += in a substituted object adds to the value within that object only.',
    file: 'src/hocon/resolver.ts',
    find: "return { ...head, layers: [{ kind: 'isolated', layers: head.layers }] };",
    replace: 'return head;',
    tests: ['test/hocon/specification.test.ts', '-t', '\\+='],
  },
  {
    name: 'hocon-ancestor-expanded',
    promise: 'An optional reference to an ancestor has no value.',
    file: 'src/hocon/resolver.ts',
    find: 'this.#recursive.add(node);',
    replace: '',
    tests: ['test/hocon/specification.test.ts', '-t', 'Self-referential'],
  },
];
