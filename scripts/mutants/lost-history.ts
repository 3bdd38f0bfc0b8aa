import type { Mutant } from './mutant.ts';

const DETECTOR = 'src/workers/lost-history-detector.ts';
const BARRIER = 'src/storage/hooks/timeline-barrier.ts';
const HEADS = 'src/storage/messages/lost-heads.ts';
const FAILOVERS = 'test/workers/lost-history-detector.test.ts';
const BARRIER_TEST = 'test/storage/hooks/timeline-barrier.test.ts';
const HEADS_TEST = 'test/storage/messages/lost-heads.test.ts';
const LOSSY = [FAILOVERS, '-t', 'that lost messages raises the epoch once'];

/** Faults in what notices that the database has lost history, and in what follows. */
export const LOST_HISTORY_MUTANTS: readonly Mutant[] = [
  {
    name: 'silent-node-not-waited-for',
    promise: 'A new timeline waits for what every node has found.',
    file: BARRIER,
    find: 'if (mayWait && silentNodes.length > 0) return null;',
    replace: '',
    tests: [BARRIER_TEST, '-t', 'when time is up'],
  },
  {
    name: 'silent-node-taken-for-agreement',
    promise: 'A node that says nothing in a new timeline raises the epoch.',
    file: BARRIER,
    find: 'const raises = isLossReported || silentNodes.length > 0;',
    replace: 'const raises = isLossReported;',
    tests: [BARRIER_TEST, '-t', 'when time is up'],
  },
  {
    name: 'killed-node-may-confirm',
    promise: 'A node that may have forgotten what it knew does not confirm a new timeline.',
    file: BARRIER,
    find: "and finding <> 'complete'",
    replace: "and finding = 'missing'",
    tests: [BARRIER_TEST, '-t', 'reports unknown'],
  },
  {
    name: 'timeline-decided-without-lock',
    promise: 'Nodes that decide at once raise the epoch once.',
    file: BARRIER,
    find: '  await lockDecision(tx);\n  const { epochRaised',
    replace: '  const { epochRaised',
    tests: [BARRIER_TEST, '-t', 'is decided once'],
  },
  {
    name: 'late-loss-raised-by-each-node',
    promise: 'A loss that several nodes find late raises the epoch once.',
    file: BARRIER,
    find: '  if ((await readLogEpoch(tx)) > knownEpoch) return false;\n',
    replace: '',
    tests: [BARRIER_TEST, '-t', 'for all nodes that find the same'],
  },
  {
    name: 'cursor-stays-ahead-of-log',
    promise: 'A raise takes the cursors of hooks back to the end of the log.',
    file: BARRIER,
    find: 'and r.cursor > h.last_seq`',
    replace: 'and false`',
    tests: [BARRIER_TEST, '-t', 'takes cursors back'],
  },
  {
    name: 'old-settlement-not-fenced',
    promise: 'No settlement from before a raise moves a cursor behind it.',
    file: BARRIER,
    find: 'set epoch = epoch + ${RAISED_LEASE_EPOCHS}::bigint',
    replace: 'set epoch = epoch + 0',
    tests: [BARRIER_TEST, '-t', 'takes cursors back'],
  },
  {
    name: 'number-alone-compared',
    promise: 'A message is missing where another one has taken its number.',
    file: HEADS,
    find: '      or ${isOtherMoment(sql`newest.sent_at`, sql`w.sent_at_ms`)}\n',
    replace: '',
    tests: [HEADS_TEST, '-t', 'a message whose number another one has'],
  },
  {
    name: 'lost-edit-unnoticed',
    promise: 'An edit is missing where its message has an older rev.',
    file: HEADS,
    find: '      or changed.rev < w.rev\n',
    replace: '',
    tests: [HEADS_TEST, '-t', 'an edit of which the message is older'],
  },
  {
    name: 'loss-told-by-each-node',
    promise: 'Members are told of a loss once.',
    file: HEADS,
    find: '  if (told.length > 0) return false;\n',
    replace: '',
    tests: [HEADS_TEST, '-t', 'once for each epoch'],
  },
  {
    name: 'commit-not-witnessed',
    promise: 'An edit or a notice is known as soon as it is answered.',
    file: 'src/storage/db/pool.ts',
    find: '    if (revs.length > 0) this.#options.onRevsCommitted?.(revs);\n',
    replace: '',
    tests: [HEADS_TEST, '-t', 'is known as soon as it is answered'],
  },
  {
    name: 'clients-stay-ahead-of-log',
    promise: 'Clients are sent away when the log has lost its end, and follow again.',
    file: 'src/server.ts',
    find: '(): void => this.#live?.closeForLostHistory();',
    replace: '(): void => {};',
    tests: LOSSY,
  },
  {
    name: 'new-timeline-not-compared',
    promise: 'A running node compares what it knows with each new timeline.',
    file: DETECTOR,
    find: '    database.onNewTimeline = (timeline) => this.#enterNewTimeline(timeline);\n',
    replace: '',
    tests: LOSSY,
  },
  {
    name: 'witness-not-loaded',
    promise: 'A node that was killed compares at its start what it knew.',
    file: DETECTOR,
    find: '    await this.#keeper.load();\n',
    replace: '',
    tests: [FAILOVERS, '-t', 'killed with the newest witness'],
  },
  {
    name: 'witness-of-another-database',
    promise: 'What a node knew of one database is not compared with another.',
    file: 'src/workers/witness-keeper.ts',
    find: 'if (content.database !== this.#storeId) {',
    replace: 'if (this.#storeId === null) {',
    tests: ['test/workers/witness-keeper.test.ts', '-t', 'of the same database'],
  },
  {
    name: 'witness-file-written-in-place',
    promise: 'The file of the witness is whole after a kill.',
    file: 'src/data-dir/witness-file.ts',
    find: "const file = await open(`${path}.new`, 'w', 0o600);",
    replace: "const file = await open(path, 'w', 0o600);\n  await (await open(`${path}.new`, 'w')).close();",
    tests: ['test/data-dir/witness-file.test.ts', '-t', 'whole after a kill'],
  },
];
