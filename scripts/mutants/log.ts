import type { Mutant } from './mutant.ts';

/** Faults in the message log: posts, their numbers, their order, and who may write them. */
export const LOG_MUTANTS: readonly Mutant[] = [
  {
    name: 'held-posts-never-released',
    promise: 'A post behind a lock is written once the lock is released.',
    file: 'src/storage/message-log.ts',
    find: 'this.#queue.release(held.filter((id) => !locked.has(id)));',
    replace: 'this.#queue.release(held.filter((id) => locked.has(id)));',
    tests: ['test/storage/message-log-failures.test.ts'],
  },
];
