import type { Mutant } from './mutant.ts';

const BODIES = 'test/http/body-limits.test.ts';
const BOUNDS = 'test/operations/core/json-limits.test.ts';
const BUDGET = 'test/operations/core/parse-budget.test.ts';
const FRAMES = 'test/live/frame-limits.test.ts';

/** Faults in the bounds of bodies and frames, and of the time that one source may use. */
export const LIMITS_MUTANTS: readonly Mutant[] = [
  {
    name: 'json-depth-unbounded',
    promise: 'A text that is nested deeper than its limit is refused before it is parsed.',
    file: 'src/operations/core/json-limits.ts',
    find: 'if (depth > limits.maxDepth) return',
    replace: 'if (depth > 1e9) return',
    tests: [BOUNDS, '-t', 'levels'],
  },
  {
    name: 'json-shapes-by-key',
    promise: 'Few keys in an order of their own in each object count as many shapes.',
    file: 'src/operations/core/json-limits.ts',
    find: 'extendShapeHash(text, at + 1, end, shapeHashByDepth[depth]!)',
    replace: 'extendShapeHash(text, at + 1, end, HASH_SEED | 1)',
    tests: [BOUNDS, '-t', 'order of its own'],
  },
  {
    name: 'json-padded-numbers-free',
    promise: 'A key such as "07" counts as a key of an object, which V8 makes a hidden class for.',
    file: 'src/operations/core/json-limits.ts',
    find: '(end === begin + 1 || text.charCodeAt(begin) !== DIGIT_0)',
    replace: 'true',
    tests: [BOUNDS, '-t', 'look like numbers'],
  },
  {
    name: 'compression-ratio-unbounded',
    promise: 'A compressed body expands at most fifty times, or to 64 KiB.',
    file: 'src/operations/core/input-limits.ts',
    find: 'sentBytes * MAX_COMPRESSION_RATIO',
    replace: 'sentBytes * 1e6',
    tests: [BODIES, '-t', 'expands'],
  },
  {
    name: 'anonymous-operations-unbounded',
    promise: 'An operation that needs no token takes 16 KiB of 50 values that are not compressed.',
    file: 'src/operations/core/input-limits.ts',
    find: "who === 'anybody' ? ANYBODY_OPERATION_LIMITS : SIGNED_IN_OPERATION_LIMITS",
    replace: 'SIGNED_IN_OPERATION_LIMITS',
    tests: [BODIES, '-t', 'for anybody takes'],
  },
  {
    name: 'registration-parsed-before-rate',
    promise: 'A registration beyond the rate of its group is not parsed.',
    file: 'src/http/reverse-webhook-routes.ts',
    find: `        limitGroupHookRegistrations(services, actor);
        const request = await readInput(req, res, parseRegistration);
`,
    replace: `        const request = await readInput(req, res, parseRegistration);
        limitGroupHookRegistrations(services, actor);
`,
    tests: [BODIES, '-t', 'registrations of a minute'],
  },
  {
    name: 'values-of-frames-not-counted',
    promise: 'The values of a frame are counted against its operation before the schema sees them.',
    file: 'src/operations/core/call-operation.ts',
    find: 'limitsOf(operation).maxValues)',
    replace: 'FRAME_LIMITS.maxValues)',
    tests: [FRAMES, '-t', 'takes 500 values'],
  },
  {
    name: 'large-frames-before-signing-in',
    promise: 'A connection that has not signed in sends frames of 16 KiB at most.',
    file: 'src/live/transport/websocket-upgrades.ts',
    find: 'Math.min(MAX_ANONYMOUS_FRAME_BYTES, config.live.maxFrameBytes)',
    replace: 'config.live.maxFrameBytes',
    tests: [FRAMES, '-t', '16 KiB'],
  },
  {
    name: 'small-frames-after-signing-in',
    promise: 'A connection that has signed in sends frames of live.max-frame-size.',
    file: 'src/live/transport/websocket-connection.ts',
    find: 'receiver._maxPayload = maxBytes',
    replace: 'receiver._maxPayload += 0',
    tests: [FRAMES, '-t', '16 KiB'],
  },
  {
    name: 'budget-not-charged',
    promise: 'What one source sends is parsed for at most 250 ms a second.',
    file: 'src/operations/core/parse-budget.ts',
    find: 'const chargedMs = Math.min(ms, MAX_CHARGE_MS);',
    replace: 'const chargedMs = 0;',
    tests: [BUDGET, '-t', '250 ms in any second'],
  },
  {
    name: 'budget-window-too-short',
    promise: 'No second, wherever it begins, holds more than the budget.',
    file: 'src/operations/core/parse-budget.ts',
    find: 'const WINDOW_SLOTS = 11;',
    replace: 'const WINDOW_SLOTS = 5;',
    tests: [BUDGET, '-t', '250 ms in any second'],
  },
  {
    name: 'budget-without-turns',
    promise: 'After long parsing everything else has a turn before the next body is parsed.',
    file: 'src/operations/core/parse-budget.ts',
    find: 'this.#parseMsLessPauses() < MAX_ALL_SOURCES_TURN_MS',
    replace: 'this.#parseMsLessPauses() < 1e9',
    tests: [BUDGET, '-t', 'has a turn'],
  },
  {
    name: 'budget-used-up-at-once',
    promise: 'Live clients of one source that wait for time get it evenly over the second.',
    file: 'src/operations/core/parse-budget.ts',
    find: 'this.#budgetMs / (WINDOW_SLOTS - 1)',
    replace: 'this.#budgetMs',
    tests: [BUDGET, '-t', 'share the budget'],
  },
  {
    name: 'budget-line-not-kept',
    promise: 'A live client of a source is charged before the next one looks at the time that is left.',
    file: 'src/operations/core/parse-budget.ts',
    find: '      await previousTail;\n',
    replace: '',
    tests: [BUDGET, '-t', 'wait in a line'],
  },
];
