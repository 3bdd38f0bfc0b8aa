import { expect, test } from '@jest/globals';
import { LocalBus, type BusEvents, type PresenceUpdate } from '../../src/bus/bus.ts';
import { NotificationBatch } from '../../src/bus/notification-batch.ts';
import { splitSnapshot } from '../../src/bus/presence-format.ts';
import { decodeResync, dispatchNotification, MAX_PAYLOAD_BYTES, RELIABLE_EVENTS } from '../../src/bus/wire-format.ts';
import type { AccountId, ConversationId, Seq } from '../../src/model/ids.ts';

type ReceivedEvent = [keyof BusEvents, unknown];

/** The events that another node receives from these payloads of notifications. */
function dispatched(payloads: readonly string[]): ReceivedEvent[] {
  const local = new LocalBus();
  const heard: ReceivedEvent[] = [];
  for (const event of ['presence', 'ephemeral', ...RELIABLE_EVENTS] as const) {
    local.subscribe({ [event]: (payload: unknown) => void heard.push([event, payload]) });
  }
  for (const notification of payloads.flatMap((payload) => payload.split(';'))) {
    const [letter, items] = [notification[0], notification.slice(1).split(',')];
    expect(dispatchNotification(local, 'n', { letter, items })).toBe(true);
  }
  return heard;
}

function takeAll(batch: NotificationBatch, maxBytes = MAX_PAYLOAD_BYTES): string[] {
  const texts: string[] = [];
  for (let taken = batch.take(maxBytes); taken !== null; taken = batch.take(maxBytes)) texts.push(taken.payloadText);
  return texts;
}

const conversations = (count: number): Map<ConversationId, Seq> =>
  new Map(Array.from({ length: count }, (_, n) => [(1_000_000 + n) as ConversationId, (n + 1) as Seq]));

test('of several words about one conversation the newest is told', () => {
  const batch = new NotificationBatch();
  for (const seq of [1, 2, 3]) batch.add('messagesCommitted', new Map([[7 as ConversationId, seq as Seq]]));
  expect(takeAll(batch)).toEqual(['a7:3']);
});

test.each([1, 875, 876, 5_000, 20_000])(
  '%d conversations are told one by one, in payloads that PostgreSQL takes',
  (count) => {
    const batch = new NotificationBatch();
    batch.add('messagesCommitted', conversations(count));
    batch.add('tokensRevoked', ['aa', 'bb']);
    batch.add('leasesNeedRebalancing', undefined);
    const payloads = takeAll(batch);
    for (const payload of payloads) expect(payload.length).toBeLessThanOrEqual(MAX_PAYLOAD_BYTES);
    const heard = dispatched(payloads);
    const committed = heard.flatMap(([event, payload]) =>
      event === 'messagesCommitted' ? [...(payload as ReadonlyMap<ConversationId, Seq>)] : [],
    );
    expect(new Map(committed)).toEqual(conversations(count));
    expect(committed).toHaveLength(count);
    expect(heard).toContainEqual(['tokensRevoked', ['aa', 'bb']]);
    expect(heard.filter(([event]) => event === 'leasesNeedRebalancing')).toHaveLength(1);
  },
);

test('more than is kept of one kind is a resync of that kind, and other kinds are told as they are', () => {
  const batch = new NotificationBatch();
  batch.add('messagesCommitted', conversations(20_001));
  batch.add('tokensRevoked', ['aa']);
  batch.add('messagesCommitted', conversations(1));
  expect(takeAll(batch)).toEqual(['*a;taa']);
  expect(decodeResync(['a'])).toEqual(new Set(['messagesCommitted']));
  batch.requireResync();
  expect(takeAll(batch)).toEqual(['*']);
  expect(decodeResync([''])).toEqual(RELIABLE_EVENTS);
});

test('what could not be sent is told again, unless there is something newer; signals are lost', () => {
  const batch = new NotificationBatch();
  const conversationId = 1 as ConversationId;
  batch.add('messagesCommitted', new Map([[conversationId, 5 as Seq]]));
  batch.add('hooksChanged', [conversationId]);
  batch.add('ephemeral', { kind: 'typing', conversationId, accountId: 1 as AccountId });
  const failed = batch.take(MAX_PAYLOAD_BYTES)!;
  batch.add('messagesCommitted', new Map([[conversationId, 6 as Seq]]));
  batch.putBack(failed);
  expect(takeAll(batch)).toEqual(['h1;a1:6']);
});

test('signals leave room for the words that must not be lost, and are told behind them', () => {
  const batch = new NotificationBatch();
  for (let id = 1; id <= 20; id += 1) {
    batch.add('ephemeral', { kind: 'typing', conversationId: 1 as ConversationId, accountId: id as AccountId });
  }
  batch.add('messagesCommitted', new Map([[7 as ConversationId, 9 as Seq]]));
  const [first, ...others] = takeAll(batch, 10);
  expect(first).toBe('a7:9;y1:1');
  expect(dispatched(others)).toHaveLength(19);
});

test.each([0, 1, 12_000, 100_000])(
  'a snapshot of %d accounts arrives whole and in order behind the changes before it',
  (count) => {
    const batch = new NotificationBatch();
    const accounts = Array.from({ length: count }, (_, n) => (n * 37 + 5) as AccountId);
    const updates: PresenceUpdate[] = [
      { kind: 'change', changeNumber: 41, accountId: 7 as AccountId, online: true },
      { kind: 'change', changeNumber: 42, accountId: 7 as AccountId, online: false },
      ...splitSnapshot(42, accounts),
      { kind: 'position', changeNumber: 42 },
      { kind: 'request', snapshotOfNode: 'b' },
      { kind: 'request', snapshotOfNode: null },
      { kind: 'leave' },
    ];
    for (const update of updates) batch.add('presence', { node: 'a', update });
    const payloads = takeAll(batch);
    for (const payload of payloads) expect(payload.length).toBeLessThanOrEqual(MAX_PAYLOAD_BYTES);
    expect(dispatched(payloads)).toEqual(updates.map((update) => ['presence', { node: 'n', update }]));
  },
);
