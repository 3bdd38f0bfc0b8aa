/** One fault that `make mutants` plants: a promise of the code that the edit breaks, and the tests that should fail. */
export interface Mutant {
  /** In kebab-case, unique among all lists. */
  readonly name: string;
  /** One sentence: the promise that the fault breaks. */
  readonly promise: string;
  /** The file to edit, as a path relative to the root of the source tree. */
  readonly file: string;
  /** The text to replace; it occurs once in the file. */
  readonly find: string;
  readonly replace: string;
  /** Arguments for jest, as narrow as possible: `['test/live/presence.test.ts', '-t', 'agrees']`. */
  readonly tests: readonly string[];
}
