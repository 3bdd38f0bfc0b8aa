import type { Mutant } from './mutant.ts';

/** Faults in what bounds one caller: sources, codes by mail, upload places, connections, push, expiry of sessions. */
export const SOURCES_MUTANTS: readonly Mutant[] = [
  {
    name: 'source-whole-ipv6-address',
    promise: 'Each IPv6 address counts for itself, so that one customer has 2^64 sources.',
    file: 'src/model/source-key.ts',
    find: 'const PARTS_OF_64 = 4;',
    replace: 'const PARTS_OF_64 = 8;',
    tests: ['test/model/source-key', 'test/live/endpoints', '-t', 'network of one .*customer'],
  },
];
