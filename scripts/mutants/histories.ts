import type { Mutant } from './mutant.ts';

const TEST = 'test/faults/histories.test.ts';
const WITHOUT_RESTORE = ['-t', 'redeliveries and retention'];

/** Faults that a receiver notices if it follows docs/reverse-webhooks.md, whatever happens to its group and server. */
export const HISTORY_MUTANTS: readonly Mutant[] = [
  {
    name: 'cursor-written-too-low',
    promise: 'Pausing or changing a strict hook repeats nothing.',
    file: 'src/storage/hooks/write-settlements.ts',
    find: 'set cursor = greatest(r.cursor, i.cursor),\n        failures = case when r.generation = i.generation then 0',
    replace:
      'set cursor = greatest(r.cursor, i.cursor - 2),\n        failures = case when r.generation = i.generation then 0',
    tests: [TEST, ...WITHOUT_RESTORE],
  },
  {
    name: 'strict-batches-in-no-order',
    promise: 'A strict hook gets its messages in their order, in batches too.',
    file: 'src/delivery/lane.ts',
    find: "row.order === 'none' ? new",
    replace: "row.order === 'none' || row.batch > 1 ? new",
    tests: [TEST, ...WITHOUT_RESTORE],
  },
  {
    name: 'edit-without-event',
    promise: 'A hook gets each change that it asks for.',
    file: 'src/storage/messages/insert-hook-event.ts',
    find: '  await tx`\n    insert into hook_event',
    replace: "  if (kind === 'message.updated' && rev % 4 === 0) return;\n  await tx`\n    insert into hook_event",
    tests: [TEST, ...WITHOUT_RESTORE],
  },
  {
    name: 'older-lane-ends-newer-request',
    promise: 'A message that is asked for again while it is on its way is sent again.',
    file: 'src/storage/hooks/write-settlements.ts',
    find: ' and d.generation <= retry.generation and retry.next_at is null',
    replace: ' and retry.next_at is null',
    tests: ['test/storage/hooks/hook-control.test.ts', '-t', 'be sent again'],
  },
  {
    name: 'restore-gives-out-lost-ids',
    promise: 'No message after a restore has the id of one that was lost.',
    file: 'src/storage/backup/load.ts',
    find: 'newEpochAbove === undefined ? null : await',
    replace: 'newEpochAbove !== undefined ? null : await',
    tests: [TEST, '-t', 'restores of a backup'],
  },
];
