import type { Mutant } from './mutant.ts';

const PATH_TESTS = 'test/http/callers/caller-paths.test.ts';

/** Faults in behaviour that other products' programs rely on when they post. */
export const FOREIGN_CALLER_MUTANTS: readonly Mutant[] = [
  {
    name: 'referenced-file-refused',
    promise: 'A file is taken from the field that another field of the form names.',
    file: 'src/http/multipart-receiver.ts',
    find: 'FILE_FIELD_NAME.test(field) || this.#referencedFields.has(field)',
    replace: 'FILE_FIELD_NAME.test(field)',
    tests: [PATH_TESTS, '-t', 'that another one names'],
  },
  {
    name: 'discord-file-without-message',
    promise: 'A file on an address of Discord is answered with 200.',
    file: 'src/http/callers/answer-dialects.ts',
    find: '!asksToWait(req) && !carriesFiles(req)',
    replace: '!asksToWait(req)',
    tests: [PATH_TESTS, '-t', 'takes a form with the text'],
  },
  {
    name: 'delivery-id-of-github-ignored',
    promise: 'An event of GitHub that is delivered again is one message.',
    file: 'src/http/post-headers.ts',
    find: "'x-github-delivery'",
    replace: "'x-github-delivery-of-nobody'",
    tests: ['test/http/callers/github-examples.test.ts', '-t', 'under its id'],
  },
];
