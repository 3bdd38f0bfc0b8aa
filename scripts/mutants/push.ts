import type { Mutant } from './mutant.ts';

const SETTLEMENT = 'src/storage/push-settlement.ts';
const ROWS = 'test/push/standing-rows.test.ts';

/** Faults in pushes to devices: rows that are lost, sent twice or withdrawn too early. */
export const PUSH_MUTANTS: readonly Mutant[] = [
  {
    name: 'read-part-withdraws-whole-row',
    promise: 'Reading a part of what a push row stands for leaves the row.',
    file: SETTLEMENT,
    find: 'and w.last_seq <= r.seq',
    replace: 'and w.first_seq <= r.seq',
    tests: [ROWS, '-t', 'withdraws what was read'],
  },
  {
    name: 'withdrawal-without-row-lock',
    promise: 'A withdrawal that waits while the push row grows leaves the row.',
    file: SETTLEMENT,
    find: 'order by w.device_id, w.conversation_id for update of w',
    replace: 'order by w.device_id, w.conversation_id',
    tests: [ROWS, '-t', 'while the row grows'],
  },
  {
    name: 'withdrawals-lose-newest-position',
    promise: 'The queue withdraws up to the newest read position that it heard.',
    file: 'src/push/withdrawals.ts',
    find: '(this.#waiting.get(key)?.seq ?? 0) < seq',
    replace: '(this.#waiting.get(key)?.seq ?? 0) > seq',
    tests: [ROWS, '-t', 'heard by the queue'],
  },
  {
    name: 'old-row-expires-with-young-message',
    promise: 'A push row that also stands for a young message does not expire.',
    file: SETTLEMENT,
    find: "and (o.newest_at is null or o.newest_at <= now() - ${afterMs} * interval '1 millisecond')",
    replace: '',
    tests: [ROWS, '-t', 'leaves a row that stands for something younger'],
  },
  {
    name: 'row-expires-by-first-message',
    promise: 'The age of a push row is that of its newest message.',
    file: SETTLEMENT,
    find: 'm.seq = p.last_seq',
    replace: 'm.seq = p.first_seq',
    tests: [ROWS, '-t', 'leaves a row that stands for something younger'],
  },
  {
    name: 'claimed-row-expires',
    promise: 'A push row that is being sent does not expire.',
    file: SETTLEMENT,
    find: 'and p.next_at <= now() and p.claimed_until <= now()',
    replace: 'and p.next_at <= now()',
    tests: [ROWS, '-t', 'has claimed'],
  },
  {
    name: 'settlement-of-earlier-claim-counts',
    promise: 'The answer to an earlier claim of a push row is ignored.',
    file: SETTLEMENT,
    find: 'and p.conversation_id = g.conversation_id and p.claim = g.claim\n      and p.last_seq',
    replace: 'and p.conversation_id = g.conversation_id\n      and p.last_seq',
    tests: [ROWS, '-t', 'claimed again'],
  },
  {
    name: 'settlement-removes-grown-row',
    promise: 'A push row that grew while it was sent stands for the rest.',
    file: SETTLEMENT,
    find: 'and p.last_seq <= g.last_seq and (select',
    replace: 'and (select',
    tests: [ROWS, '-t', 'stands for what came later'],
  },
  {
    name: 'grown-row-told-again-from-the-start',
    promise: 'After a push the row stands for what came after the sent message.',
    file: SETTLEMENT,
    find: 'set first_seq = h.last_seq + 1, attempts = 0',
    replace: 'set attempts = 0',
    tests: [ROWS, '-t', 'stands for what came later'],
  },
  {
    name: 'claim-takes-claimed-rows',
    promise: 'A push row that is being sent is claimed by nobody else.',
    file: 'src/storage/push-claims.ts',
    find: 'next_at <= now() and claimed_until <= now()\n        and (select',
    replace: 'next_at <= now()\n        and (select',
    tests: ['test/push/queue-nodes.test.ts'],
  },
];
