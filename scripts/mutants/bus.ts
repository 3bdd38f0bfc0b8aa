import type { Mutant } from './mutant.ts';

const FOLLOWER = 'src/bus/log-follower.ts';
const FOLLOWER_TEST = 'test/bus/log-follower.test.ts';

/** Faults in the notifications between nodes. */
export const BUS_MUTANTS: readonly Mutant[] = [
  {
    name: 'question-answered-unheard',
    promise: 'A node confirms a change only after its listeners have heard of it.',
    file: 'src/bus/postgres-bus.ts',
    find: "    this.#local.publish('hooksChanged', [Number(conversation) as ConversationId]);\n",
    replace: '',
    tests: ['test/bus/postgres-bus.test.ts', '-t', 'asks one node to confirm'],
  },
  {
    name: 'new-neighbour-told-nothing',
    promise: 'A node that comes after a silence is told to look for itself.',
    file: 'src/bus/postgres-bus.ts',
    find: '    if (this.#hasNoPeers) this.#batch.requireResync();\n',
    replace: '',
    tests: ['test/bus/postgres-bus.test.ts', '-t', 'once another node is heard'],
  },
  {
    name: 'new-session-without-gap',
    promise: 'A node that listens again looks for what it missed.',
    file: 'src/bus/postgres-bus.ts',
    find: '        this.#announceGap();\n',
    replace: '',
    tests: ['test/bus/postgres-bus.test.ts', '-t', 'listens again when its session was killed'],
  },
  {
    name: 'outbox-keeps-oldest-seq',
    promise: 'The newest seq of a conversation goes into the next word.',
    file: 'src/bus/notification-batch.ts',
    find: 'if (areNewer || !queuedItems.has(subject)) queuedItems.set',
    replace: 'if (!queuedItems.has(subject)) queuedItems.set',
    tests: ['test/bus/notification-batch.test.ts'],
  },
  {
    name: 'lost-word-forgotten',
    promise: 'A word that could not be sent is told again.',
    file: 'src/bus/postgres-bus.ts',
    find: '        this.#batch.putBack(payload);\n',
    replace: '',
    tests: ['test/bus/postgres-bus.test.ts', '-t', 'tells a word again'],
  },
  {
    name: 'overflow-tells-everything',
    promise: 'More words of one kind than are kept make nobody look at other kinds.',
    file: 'src/bus/notification-batch.ts',
    find: 'if (queuedItems.size > MAX_ITEMS_PER_LETTER) this.#requireResyncOf(letter);',
    replace: 'if (queuedItems.size > MAX_ITEMS_PER_LETTER) this.requireResync();',
    tests: ['test/bus/notification-batch.test.ts'],
  },
  {
    name: 'follower-ignores-resync',
    promise: 'A worker that follows the log searches the database after notifications were lost.',
    file: FOLLOWER,
    find: 'if (events.some((event) => kinds.has(event))) this.#requestSweep();',
    replace: '',
    tests: [FOLLOWER_TEST, '-t', 'what the bus announces'],
  },
  {
    name: 'follower-drops-batch-of-outage',
    promise: 'A worker that follows the log processes again what it processed when the database was lost.',
    file: FOLLOWER,
    find: 'if (failures < MAX_CONVERSATION_FAILURES) this.#queue',
    replace: 'if (!isUnavailable && failures < MAX_CONVERSATION_FAILURES) this.#queue',
    tests: [FOLLOWER_TEST, '-t', 'when it is back'],
  },
  {
    name: 'follower-drops-what-came-meanwhile',
    promise: 'A worker that needs nothing of what is queued keeps what is announced while it finds that out.',
    file: FOLLOWER,
    find: '    this.#queue.clear();\n    this.#sweepPosition = null;',
    replace: '    this.#queue.clear();\n    this.#notified.clear();\n    this.#sweepPosition = null;',
    tests: [FOLLOWER_TEST, '-t', 'keeps what comes meanwhile'],
  },
];
