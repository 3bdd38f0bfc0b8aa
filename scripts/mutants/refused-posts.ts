import type { Mutant } from './mutant.ts';

const POST_TESTS = 'test/http/callers/refused-posts.test.ts';
const RECORDER = 'src/operations/core/refused-post-recorder.ts';
const RECORDER_TESTS = 'test/operations/core/refused-post-recorder.test.ts';

/** What a group keeps of posts that were refused. */
export const REFUSED_POST_MUTANTS: readonly Mutant[] = [
  {
    name: 'refused-posts-by-code',
    promise: 'Every post that is refused with a 4xx is recorded, whatever its code.',
    file: 'src/http/callers/refused-post.ts',
    find: 'status >= 400 && status < 500',
    replace: "(code === 'invalid_input' || code === 'too_large')",
    tests: [POST_TESTS, '-t', 'is stored'],
  },
  {
    name: 'refused-post-quotes-body',
    promise: 'Nothing of a body that is refused is stored.',
    file: 'src/http/callers/caller-input.ts',
    find: 'must be a string, got ${jsonTypeName(text)}',
    replace: 'must be a string, got ${JSON.stringify(text)}',
    tests: [POST_TESTS, '-t', 'another type'],
  },
  {
    name: 'refused-posts-unbounded',
    promise: 'A group keeps 20 rows of refused posts.',
    file: 'src/storage/groups/refused-posts.ts',
    find: 'where k.rank > ${MAX_REFUSED_POSTS_PER_GROUP}',
    replace: 'where k.rank > 1000',
    tests: [RECORDER_TESTS, '-t', 'newest 20'],
  },
  {
    name: 'refused-posts-lost-with-database',
    promise: 'Refused posts wait while the database is away.',
    file: RECORDER,
    find: 'this.#putBack(groups.slice(start));',
    replace: '',
    tests: [RECORDER_TESTS, '-t', 'they wait'],
  },
  {
    name: 'refused-posts-written-one-by-one',
    promise: 'Refused posts of a burst are written once a second.',
    file: RECORDER,
    find: 'const WRITE_INTERVAL_MS = 1_000;',
    replace: 'const WRITE_INTERVAL_MS = 0;',
    tests: [POST_TESTS, '-t', 'of a burst'],
  },
];
