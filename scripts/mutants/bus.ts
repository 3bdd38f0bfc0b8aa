import type { Mutant } from './mutant.ts';

/** Faults in the words from node to node. */
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
    find: '    if (this.#hasNoPeers) this.#batch.mustSendResync = true;\n',
    replace: '',
    tests: ['test/bus/postgres-bus.test.ts', '-t', 'once another node is heard'],
  },
  {
    name: 'new-session-without-gap',
    promise: 'A node that listens again looks for what it missed.',
    file: 'src/bus/postgres-bus.ts',
    find: "        this.#lastListenStartedAt = this.#lastEchoAt;\n        this.#local.publish('resync');",
    replace: '        this.#lastListenStartedAt = this.#lastEchoAt;',
    tests: ['test/bus/postgres-bus.test.ts', '-t', 'listens again when its session was killed'],
  },
  {
    name: 'outbox-keeps-oldest-seq',
    promise: 'The newest seq of a conversation goes into the next word.',
    file: 'src/bus/wire-format.ts',
    find: 'this.#newestSeqByConversation.set(id, seq);\n',
    replace: 'if (!this.#newestSeqByConversation.has(id)) this.#newestSeqByConversation.set(id, seq);\n',
    tests: ['test/bus/postgres-bus.test.ts', '-t', 'the newest seq of each'],
  },
  {
    name: 'repeated-word-keeps-place',
    promise: 'Of two words about one thing the later one is heard last.',
    file: 'src/bus/wire-format.ts',
    find: '      set.delete(item);\n',
    replace: '',
    tests: ['test/bus/notification-batch.test.ts'],
  },
];
