import type { Mutant } from './mutant.ts';

const ROWS = 'src/storage/groups/expectations.ts';
const SIGNS = 'src/storage/messages/signs-of-life.ts';
const ROW_TESTS = 'test/storage/groups/expectations.test.ts';
const MONITOR_TESTS = 'test/workers/expectation-monitor.test.ts';

/** Faults in expectations: which time counts, and how often the group gets a line. */
export const EXPECTATION_MUTANTS: readonly Mutant[] = [
  {
    name: 'intake-clock-counts-outages',
    promise: 'Time in which no node could take posts does not count.',
    file: ROWS,
    find: 'greatest(0, least(${openMs}::bigint, extract(epoch from clock_timestamp() - c.advanced_at) * 1000))::bigint',
    replace: 'greatest(0, ${openMs} * 0 + extract(epoch from clock_timestamp() - c.advanced_at) * 1000)::bigint',
    tests: [ROW_TESTS, '-t', 'no more than the node could take posts'],
  },
  {
    name: 'return-not-told',
    promise: 'A group that was told that a post stays away is told when it comes again.',
    file: SIGNS,
    find: "case e.state when 'overdue' then 'returned' else e.state end",
    replace: "case e.state when 'overdue' then 'waiting' else e.state end",
    tests: [MONITOR_TESTS, '-t', 'once when it comes again'],
  },
  {
    name: 'overdue-told-again',
    promise: 'Nodes that tell a group at the same moment tell it once.',
    file: ROWS,
    find: "set state = case state when 'waiting' then 'overdue' else 'waiting' end",
    replace: "set state = case state when 'waiting' then 'waiting' else 'waiting' end",
    tests: [ROW_TESTS, '-t', 'told once by nodes'],
  },
];
