import { describe, expect, test } from '@jest/globals';
import type { EncodedEvent, EventReader } from '../../../src/delivery/events/event-reader.ts';
import { EventRequestBuilder } from '../../../src/delivery/events/event-request-builder.ts';
import type { ConversationId, LogEpoch, Rev, Seq } from '../../../src/model/ids.ts';
import type { LaneRow } from '../../../src/storage/hooks/lanes.ts';
import { MAX_SKIPPED_PER_REQUEST } from '../../../src/delivery/request-body-builder.ts';

const LAST_REV = MAX_SKIPPED_PER_REQUEST + 100;

/** An edit for the first and the last rev, and between them deletions, which the hook does not want. */
const event = (rev: number, change: Partial<EncodedEvent> = {}): EncodedEvent => ({
  rev: rev as Rev,
  seq: rev as Seq,
  logEpoch: 1 as LogEpoch,
  afterSeq: 1 as Seq,
  kind: rev === 1 || rev === LAST_REV ? 'message.updated' : 'message.deleted',
  actorKind: 'user',
  hops: 0,
  body: Buffer.from(`{"rev":${rev}}`),
  ...change,
});
const allEvents = (change: (rev: number) => Partial<EncodedEvent> = () => ({})): EncodedEvent[] =>
  Array.from({ length: LAST_REV }, (_, n) => event(n + 1, change(n + 1)));

function builderOf(events: readonly EncodedEvent[]): EventRequestBuilder {
  const reader = {
    next: async (_: ConversationId, after: Rev) => ({
      event: events.find(({ rev }) => rev > after) ?? null,
      headSeq: LAST_REV as Seq,
    }),
  };
  const row = {
    conversationId: 1,
    batch: 1_000,
    events: ['message.updated'],
    skip: [],
    startAfterSeq: 0,
    eventStartAfterRev: 0,
    hasPendingEvents: true,
    eventCursor: 0,
  };
  return new EventRequestBuilder(reader as unknown as EventReader, row as unknown as LaneRow);
}

async function requestOf(events: readonly EncodedEvent[], resendRangeEnd: number | null) {
  const bounds = {
    maxEvents: Number.POSITIVE_INFINITY,
    resendRangeEnd: resendRangeEnd as Rev | null,
    maxAfterSeq: 1 as Seq,
  };
  const { request } = await builderOf(events).next(0 as Rev, bounds);
  return { revs: request!.revs, lastRev: request!.lastRev };
}

describe('a batch of events', () => {
  test('ends where it would skip more than 500 events, but covers the whole range of a failed batch', async () => {
    expect(await requestOf(allEvents(), null)).toEqual({ revs: [1], lastRev: 1 });
    expect(await requestOf(allEvents(), LAST_REV)).toEqual({ revs: [1, LAST_REV], lastRev: LAST_REV });
  });

  test.each<[string, Partial<EncodedEvent>]>([
    ['waits for a message', { afterSeq: 2 as Seq }],
    ['is of another epoch', { logEpoch: 2 as LogEpoch }],
  ])('that is sent again claims nothing after an event that %s', async (_event, change) => {
    const events = allEvents((rev) => (rev > 10 ? change : {}));
    expect(await requestOf(events, LAST_REV)).toEqual({ revs: [1], lastRev: 1 });
  });
});
