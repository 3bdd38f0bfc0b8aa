import type { Mutant } from './mutant.ts';

const STRICT = 'test/delivery/events/strict-events.test.ts';
const ASKING_HOOKS = 'test/delivery/events/hook-events.test.ts';

/** Faults in events of reverse webhooks: which hooks get them, in which order, and for how long. */
export const EVENT_MUTANTS: readonly Mutant[] = [
  {
    name: 'failed-batch-of-events-cut',
    promise: 'A failed batch of events is sent again in part, if its hook wants fewer events now; the rest is lost.',
    file: 'src/delivery/events/event-request-builder.ts',
    find: 'if (skippedCount > MAX_SKIPPED_PER_REQUEST && resendRangeEnd === null) break;',
    replace: 'if (skippedCount > MAX_SKIPPED_PER_REQUEST) break;',
    tests: ['test/delivery/events/event-request-builder', '-t', 'covers the whole range'],
  },
  {
    name: 'message-overtakes-event',
    promise: 'A strict hook gets an event before the messages that were posted after it.',
    file: 'src/delivery/events/ordered-requests.ts',
    find: '      cursor < this.#messagesBeforeNextEvent.toSeq\n',
    replace: '      cursor <= this.#messagesBeforeNextEvent.toSeq\n',
    tests: [STRICT, '-t', 'between the messages'],
  },
  {
    name: 'event-overtakes-message',
    promise: 'A strict hook gets an event behind the messages that were posted before it.',
    file: 'src/delivery/events/event-request-builder.ts',
    find: 'const isWaiting = event.afterSeq > bounds.maxAfterSeq;',
    replace: 'const isWaiting = event.afterSeq > bounds.maxAfterSeq + 1;',
    tests: [STRICT, '-t', 'between the messages'],
  },
  {
    name: 'batch-takes-messages-beyond-event',
    promise: 'A batch ends before the message that comes after an event.',
    file: 'src/delivery/request-body-builder.ts',
    find: 'const end = bounds.resendRangeEnd ?? bounds.maxSeq ?? null;',
    replace: 'const end = bounds.resendRangeEnd ?? null;',
    tests: ['test/delivery/events/random-histories.test.ts', '-t', 'order strict and batch 7'],
  },
  {
    name: 'hook-begins-at-first-rev',
    promise: 'A hook that begins to ask for events starts behind the newest change.',
    file: 'src/storage/hooks/hook-control.ts',
    find: 'event_cursor = ${asksForNone ? null : (eventCursor ?? lastRev)}',
    replace: 'event_cursor = ${asksForNone ? null : (eventCursor ?? eventStartAfterRev ?? lastRev - 1)}',
    tests: [ASKING_HOOKS, '-t', 'starts behind it'],
  },
  {
    name: 'events-asked-without-group-lock',
    promise: 'A change of what a hook asks for waits for an edit that is under way.',
    file: 'src/operations/hooks/hook-update.ts',
    find: 'needsGroupLock: changes.events !== undefined,',
    replace: 'needsGroupLock: false,',
    tests: [ASKING_HOOKS, '-t', 'starts behind it'],
  },
  {
    name: 'event-without-wake-up',
    promise: 'The lane hears of an event at once.',
    file: 'src/operations/messages/edit-message.ts',
    find: "if (wantsEvents) bus.publish('hookEventsCommitted', [conversationId]);",
    replace: "if (wantsEvents && bus === null) bus.publish('hookEventsCommitted', [conversationId]);",
    tests: [STRICT, '-t', 'waits for no sweep'],
  },
  {
    name: 'sweep-forgets-events',
    promise: 'The sweep finds an event whose notification was lost.',
    file: 'src/delivery/sweep.ts',
    find: 'for (const find of [conversationsWithPendingMessages, conversationsWithPendingEvents]) {',
    replace: 'for (const find of [conversationsWithPendingMessages]) {',
    tests: [ASKING_HOOKS, '-t', 'found by the sweep'],
  },
  {
    name: 'redelivery-leaves-events-out',
    promise: 'A redelivery from a message on brings the events behind it.',
    file: 'src/storage/hooks/hook-control.ts',
    find: 'return first === null ? eventCursor : first - 1;',
    replace: 'return first === null ? eventCursor : eventCursor;',
    tests: [ASKING_HOOKS, '-t', 'from a message on'],
  },
  {
    name: 'settlement-puts-event-cursor-back',
    promise: 'A settlement never puts the place among the events back.',
    file: 'src/storage/hooks/write-settlements.ts',
    find: 'then greatest(r.event_cursor, i.event_cursor) end',
    replace: 'then i.event_cursor end',
    tests: ['test/storage/hooks/write-settlements.test.ts', '-t', 'place among the events'],
  },
  {
    name: 'expiry-tells-nobody',
    promise: 'A hook that has not got an event that goes has a row of it in its log.',
    file: 'src/storage/hooks/event-expiry.ts',
    find: 'if (lost > 0) expiry.onEventsLost(conversationId, lost);',
    replace: 'if (lost < 0) expiry.onEventsLost(conversationId, lost);',
    tests: ['test/storage/hooks/event-expiry.test.ts', '-t', 'tells of what'],
  },
];
