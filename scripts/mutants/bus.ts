import type { Mutant } from './mutant.ts';

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
    find: 'if (areNewer || !kept.has(subject)) kept.set',
    replace: 'if (!kept.has(subject)) kept.set',
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
    find: 'if (kept.size > MAX_ITEMS_PER_LETTER) this.#requireResyncOf(letter);',
    replace: 'if (kept.size > MAX_ITEMS_PER_LETTER) this.requireResync();',
    tests: ['test/bus/notification-batch.test.ts'],
  },
];
