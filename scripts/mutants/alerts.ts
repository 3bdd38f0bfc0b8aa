import type { Mutant } from './mutant.ts';

const STATEMENT = 'src/storage/messages/alerts.ts';
const RULES = 'src/model/alert.ts';
const WRITER = 'src/operations/messages/alert-writer.ts';
const FLUSH_TESTS = 'test/storage/messages/message-log-alerts.test.ts';
const CONFLICT_TESTS = 'test/storage/messages/message-log-alert-conflicts.test.ts';
const RULE_TESTS = 'test/model/alert.test.ts';
const WRITER_TESTS = 'test/operations/messages/alert-writer.test.ts';
const EVENT_TESTS = 'test/delivery/events/alert-events.test.ts';
const EXPIRY_TESTS = 'test/storage/retention/alert-expiry.test.ts';

/** Faults in alerts that are kept up to date: what counts as news, who writes it, and who is told. */
export const ALERT_MUTANTS: readonly Mutant[] = [
  {
    name: 'alert-version-not-compared',
    promise: 'A change of an alert is written only while its row has the version that it was decided from.',
    file: STATEMENT,
    find: 'where a.version is not distinct from p.version and a.seq',
    replace: 'where a.seq',
    tests: [CONFLICT_TESTS, '-t', 'nor is anything else of its post'],
  },
  {
    name: 'alert-seq-not-compared',
    promise: 'A row of an alert that was removed and made again is another one.',
    file: STATEMENT,
    find: 'and a.seq is not distinct from p.row_seq\n',
    replace: '\n',
    tests: [CONFLICT_TESTS, '-t', 'removed and made again'],
  },
  {
    name: 'alert-row-not-locked',
    promise: 'Of two nodes that change an alert at the same moment one is told to decide again.',
    file: STATEMENT,
    find: 'order by a.conversation_id, a.source, a.key for no key update of a\n',
    replace: 'order by a.conversation_id, a.source, a.key\n',
    tests: [CONFLICT_TESTS, '-t', 'changed the row at the same moment'],
  },
  {
    name: 'alert-first-row-race-poisons',
    promise: 'Of two nodes that write the first row of an alert one is told to decide again.',
    file: 'src/storage/messages/message-log.ts',
    find: "violatesUnique(error, 'alert_pkey');",
    replace: "violatesUnique(error, 'alert_pkey_of_nobody');",
    tests: [CONFLICT_TESTS, '-t', 'wrote the first row'],
  },
  {
    name: 'alert-edits-deleted-message',
    promise: 'A message that was deleted while an alert was decided gets no text back.',
    file: STATEMENT,
    find: 'order by m.conversation_id, m.seq for no key update of m\n',
    replace: 'order by m.conversation_id, m.seq\n',
    tests: [CONFLICT_TESTS, '-t', 'deleted meanwhile'],
  },
  {
    name: 'alert-same-text-takes-rev',
    promise: 'An edit that leaves the text as it is takes no rev.',
    file: STATEMENT,
    find: '(m.text is distinct from p.edited_text)::int as edits',
    replace: '(p.edited_text is not null)::int as edits',
    tests: [FLUSH_TESTS, '-t', 'takes no rev'],
  },
  {
    name: 'alert-event-without-hops',
    promise: 'The event of an edit carries the hops of its post.',
    file: STATEMENT,
    find: "'message.updated', e.sender_id, e.hops,",
    replace: "'message.updated', e.sender_id, 0,",
    tests: [FLUSH_TESTS, '-t', 'takes its place'],
  },
  {
    name: 'alert-event-behind-line',
    promise: 'The event of an edit stands before the new message of its post.',
    file: STATEMENT,
    find: 'a.seq0 + n.n - n.posts as after_seq',
    replace: 'a.seq0 + n.n as after_seq',
    tests: [FLUSH_TESTS, '-t', 'takes its place'],
  },
  {
    name: 'alert-conflict-takes-key-of-plain-post',
    promise: 'A plain post is not refused for a post of an alert with the same idempotency key.',
    file: STATEMENT,
    find: 'plainPostsFirst: sql`i.ord ${isOne},`,',
    replace: 'plainPostsFirst: sql``,',
    tests: [FLUSH_TESTS, '-t', 'that a plain post of the same flush has'],
  },
  {
    name: 'alert-word-names-edited-message',
    promise: 'The word of a commit names the new message of a post that changes an alert.',
    file: 'src/storage/messages/message-log.ts',
    find: '? answer.alert.postedSeq : answer.seq;',
    replace: '? answer.seq : answer.seq;',
    tests: [FLUSH_TESTS, '-t', 'announces its new message'],
  },
  {
    name: 'alert-decided-once',
    promise: 'A post of an alert that another node changed meanwhile is decided again.',
    file: WRITER,
    find: 'const MAX_TRIES = 50;',
    replace: 'const MAX_TRIES = 1;',
    tests: [WRITER_TESTS, '-t', 'at the same moment write both'],
  },
  {
    name: 'alert-posts-side-by-side',
    promise: 'A node decides the posts of one alert one after the other.',
    file: WRITER,
    find: '      await before;\n',
    replace: '',
    tests: [WRITER_TESTS, '-t', 'each is decided once'],
  },
  {
    name: 'alert-edit-announced-to-nobody',
    promise: 'The edit of an alert is announced at once.',
    file: WRITER,
    find: "if (written === undefined || written.isEdited) bus.publish('nonMessageChangesCommitted'",
    replace: "if (written === undefined) bus.publish('nonMessageChangesCommitted'",
    tests: [WRITER_TESTS, '-t', 'is announced where'],
  },
  {
    name: 'alert-event-announced-to-nobody',
    promise: 'The event of the edit of an alert wakes the lane.',
    file: WRITER,
    find: 'if (written === undefined || (written.isEdited && written.wantsEvents))',
    replace: 'if (written === undefined)',
    tests: [EVENT_TESTS, '-t', 'in its place and with the hops'],
  },
  {
    name: 'alert-of-deleted-message-stuck',
    promise: 'A change of an alert whose message was deleted is posted as a new message.',
    file: WRITER,
    find: '|| stored.isMessageGone)',
    replace: ')',
    tests: [EVENT_TESTS, '-t', 'a person deleted'],
  },
  {
    name: 'alert-firing-after-resolved',
    promise: 'Of an alert that is there twice in an update, resolved is later than firing.',
    file: RULES,
    find: "if (merged.get(firingIdOf(alert))?.state !== 'resolved') merged.set",
    replace: 'merged.set',
    tests: [RULE_TESTS, '-t', 'twice in one update'],
  },
  {
    name: 'alert-late-end-counts',
    promise: 'The late end of an earlier time of firing ends nothing that fires since.',
    file: RULES,
    find: 'other.startsAt.getTime() > start && !(isFiring(alert) && isFiring(other))',
    replace: 'other.startsAt.getTime() > start && isFiring(alert) && !isFiring(other)',
    tests: [RULE_TESTS, '-t', 'however late'],
  },
  {
    name: 'alert-corrected-start-never-ends',
    promise: 'An alert whose start was corrected to an earlier one is ended by the end of that one.',
    file: RULES,
    find: 'const ownMs = isFiring(alert) ? Infinity : startsAt.getTime();',
    replace: 'const ownMs = startsAt.getTime();',
    tests: [RULE_TESTS, '-t', 'corrected to an earlier one'],
  },
  {
    name: 'alert-bound-by-order-of-arrival',
    promise: 'A repetition of more alerts than are kept changes nothing, in whatever order they are.',
    file: RULES,
    find: 'return alerts.toSorted(compare).slice(',
    replace: 'return alerts.slice(',
    tests: [RULE_TESTS, '-t', 'always the same ones'],
  },
  {
    name: 'alert-newest-go-first',
    promise: 'Of more alerts than a group keeps the oldest go.',
    file: 'src/storage/retention/alert-expiry.ts',
    find: 'order by updated_at limit ${limit}',
    replace: 'order by updated_at desc limit ${limit}',
    tests: [EXPIRY_TESTS, '-t', 'the oldest go'],
  },
  {
    name: 'alert-expiry-waits-for-flush',
    promise: 'The removal of old alerts waits for no flush that has locked one.',
    file: 'src/storage/retention/alert-expiry.ts',
    find: 'order by updated_at limit ${limit}))\n      for update skip locked',
    replace: 'order by updated_at limit ${limit}))\n      for update',
    tests: [EXPIRY_TESTS, '-t', 'is not waited for'],
  },
];
