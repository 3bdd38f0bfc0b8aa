import type { Mutant } from './mutant.ts';

const EPOCH = 'src/storage/messages/log-epoch.ts';
const EPOCH_TESTS = 'test/storage/messages/log-epoch.test.ts';

/** Faults in the log epoch. */
export const EPOCH_MUTANTS: readonly Mutant[] = [
  {
    name: 'raise-waits-for-no-writer',
    promise: 'Nothing of an epoch is committed behind the raise of the next one.',
    file: EPOCH,
    find: '  await tx`lock table conversation_head in share row exclusive mode`;\n',
    replace: '',
    tests: [EPOCH_TESTS, '-t', 'behind all statements'],
  },
  {
    name: 'epoch-begins-at-each-change',
    promise: 'A head keeps behind which rev its epoch began.',
    file: EPOCH,
    find: 'then h.epoch_rev else h.last_rev end,\n',
    replace: 'then h.last_rev else h.last_rev end,\n',
    tests: [EPOCH_TESTS, '-t', 'the head keeps'],
  },
  {
    name: 'epoch-without-change-begins-at-start',
    promise: 'Before the first change in an epoch clients keep everything that is there.',
    file: EPOCH,
    find: 'then h.epoch_rev else h.last_rev end as "epochRev"',
    replace: 'then h.epoch_rev else h.epoch_rev end as "epochRev"',
    tests: ['test/operations/messages/epochs.test.ts', '-t', 'behind which rev'],
  },
  {
    name: 'batch-spans-two-epochs',
    promise: 'No request carries messages of two epochs.',
    file: 'src/delivery/request-body-builder.ts',
    find: 'message.logEpoch !== firstMessage.logEpoch',
    replace: 'false',
    tests: ['test/delivery/epochs/epochs.test.ts', '-t', 'never share a request'],
  },
  {
    name: 'restore-goes-on-in-old-epoch',
    promise: 'What is written after a restore has ids that no lost message had.',
    file: 'src/storage/backup/load.ts',
    find: 'newEpochAbove === undefined ? null : await',
    replace: 'newEpochAbove !== undefined ? null : await',
    tests: ['test/delivery/epochs/restored-log.test.ts'],
  },
  {
    name: 'restore-forgets-the-last-one',
    promise: 'Two restores of one backup within a minute do not share an epoch.',
    file: 'src/cli/data/restore.ts',
    find: 'newEpochAbove: await readRestoredEpoch(config.dataDir),',
    replace: 'newEpochAbove: 0 * (await readRestoredEpoch(config.dataDir)),',
    tests: ['test/cli/data/restore-epoch.test.ts', '-t', 'never share'],
  },
  {
    name: 'client-keeps-what-was-lost',
    promise: 'A client that was further than a restored server drops what was lost.',
    file: 'client/core/follower.ts',
    find: '      if (keptRev < handledRev) await this.#rewind(id, keptRev);\n',
    replace: '',
    tests: ['test/client/core/lost-changes.test.ts', '-t', 'drops what a restored server lost'],
  },
  {
    name: 'client-that-missed-an-epoch-keeps',
    promise: 'A client that missed an epoch drops everything.',
    file: 'client/core/follower.ts',
    find: 'handledEpoch === previous ? Math.min(',
    replace: 'handledEpoch <= epoch ? Math.min(',
    tests: ['test/client/core/lost-changes.test.ts', '-t', 'drops everything'],
  },
];
