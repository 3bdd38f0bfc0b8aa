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
  {
    name: 'session-expiry-timer',
    promise: 'A connection whose session expires lives until the next look-up of all sessions.',
    file: 'src/live/session-expiry.ts',
    find: 'const waitMs = Math.min(MAX_TIMER_MS',
    replace: 'const waitMs = Math.max(MAX_TIMER_MS',
    tests: ['test/live/session-expiry', '-t', 'ends its connection then'],
  },
  {
    name: 'session-expiry-turn',
    promise: 'A request of an expired session is answered while the timer is late.',
    file: 'src/live/session.ts',
    find: "      if (this.#expiry?.isPast === true) this.close('sessionEnded');",
    replace: '',
    tests: ['test/live/session-expiry', '-t', 'has no request answered'],
  },
  {
    name: 'upload-place-of-group',
    promise: 'Each group of a person has upload places of its own.',
    file: 'src/storage/upload-owner.ts',
    find: "and m.role = 'owner'),",
    replace: "and m.role = 'none'),",
    tests: ['test/http/upload-places', '-t', 'of its groups'],
  },
  {
    name: 'upload-place-of-bot',
    promise: 'Each bot of a person has upload places of its own.',
    file: 'src/storage/upload-owner.ts',
    find: '(select a.owner_id from account',
    replace: '(select a.id from account',
    tests: ['test/http/upload-places', '-t', 'of its bots'],
  },
  {
    name: 'upload-fastest-ends',
    promise: 'The fastest upload ends to make room.',
    file: 'src/files/upload-places.ts',
    find: 'place.bytesPerMs < slowest.bytesPerMs',
    replace: 'place.bytesPerMs > slowest.bytesPerMs',
    tests: ['test/files/upload-places', 'test/http/upload-places', '-t', 'slowest upload ends|brought the least'],
  },
  {
    name: 'upload-place-taken-twice',
    promise: 'An owner of one upload ends that of another owner who has one as well.',
    file: 'src/files/upload-places.ts',
    find: 'this.#held.get(place.owner)! <= held',
    replace: 'this.#held.get(place.owner)! < held',
    tests: ['test/http/upload-places', '-t', 'second place'],
  },
];
