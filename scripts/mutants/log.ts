import type { Mutant } from './mutant.ts';

const LOG = 'src/storage/message-log.ts';
const STATEMENT = 'src/storage/message-log-statement.ts';
const LOCKS = 'test/storage/message-log-locks.test.ts';

/** Faults in the message log: posts, their numbers, their order, and who may write them. */
export const LOG_MUTANTS: readonly Mutant[] = [
  {
    name: 'plain-post-without-head-lock',
    promise: 'A plain post that waits while its group is archived is refused.',
    file: STATEMENT,
    find: 'order by h.conversation_id for no key update of h\n',
    replace: 'order by h.conversation_id\n',
    tests: [LOCKS, '-t', 'archived'],
  },
  {
    name: 'keyed-post-without-head-lock',
    promise: 'A keyed post that waits while its group is archived is refused.',
    file: STATEMENT,
    find: 'order by h.conversation_id for no key update\n    ), ${hasMembers',
    replace: 'order by h.conversation_id\n    ), ${hasMembers',
    tests: [LOCKS, '-t', 'archived'],
  },
  {
    name: 'plain-heads-unordered',
    promise: 'A flush of plain posts locks the heads of its conversations by number.',
    file: STATEMENT,
    find: 'order by h.conversation_id for no key update of h\n',
    replace: 'for no key update of h\n',
    tests: [LOCKS, '-t', 'by number'],
  },
  {
    name: 'keyed-heads-unordered',
    promise: 'A flush with keys locks the heads of its conversations by number.',
    file: STATEMENT,
    find: 'order by h.conversation_id for no key update\n    ), ${hasMembers',
    replace: 'order by h.conversation_id desc for no key update\n    ), ${hasMembers',
    tests: [LOCKS, '-t', 'by number'],
  },
  {
    name: 'plain-sent-at-from-clock-alone',
    promise: 'The time of a plain post is never before that of the message above it.',
    file: STATEMENT,
    find: 'last_at = greatest(h.last_at, clock_timestamp())\n      from ${hasMembers',
    replace: 'last_at = clock_timestamp()\n      from ${hasMembers',
    tests: [LOCKS, '-t', 'never timed'],
  },
  {
    name: 'keyed-sent-at-from-clock-alone',
    promise: 'The time of a keyed post is never before that of the message above it.',
    file: STATEMENT,
    find: 'last_at = greatest(h.last_at, clock_timestamp())\n      from (select',
    replace: 'last_at = clock_timestamp()\n      from (select',
    tests: [LOCKS, '-t', 'never timed'],
  },
  {
    name: 'keyed-posts-move-position-to-first',
    promise: 'Two keyed posts of one flush move the read position of their sender to the second one.',
    file: STATEMENT,
    find: 'max(a.seq0 + n.n) as seq',
    replace: 'min(a.seq0 + n.n) as seq',
    tests: [LOCKS, '-t', 'several keyed posts'],
  },
  {
    name: 'held-posts-never-released',
    promise: 'A post behind a lock is written once the lock is released.',
    file: LOG,
    find: 'this.#queue.release(held.filter((id) => !locked.has(id)));',
    replace: 'this.#queue.release([]);',
    tests: ['test/storage/message-log-failures.test.ts', '-t', 'waits apart'],
  },
];
