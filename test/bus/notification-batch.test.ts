import { expect, test } from '@jest/globals';
import { LocalBus, type EphemeralEvent } from '../../src/bus/bus.ts';
import { dispatchNotification, NotificationBatch } from '../../src/bus/wire-format.ts';
import type { AccountId, ConversationId, Seq } from '../../src/model/ids.ts';

/** What another node hears of these words. */
function dispatched(text: string): EphemeralEvent[] {
  const local = new LocalBus();
  const received: EphemeralEvent[] = [];
  local.subscribe({ ephemeral: (signal) => received.push(signal) });
  for (const notification of text.split(';'))
    expect(dispatchNotification(local, notification[0], notification.slice(1).split(','))).toBe(true);
  return received;
}

test('of several words about one thing the latest is heard last', () => {
  const batch = new NotificationBatch();
  const accountId = 5 as AccountId;
  for (const online of [true, false, true]) batch.add('ephemeral', { kind: 'presence', accountId, online });
  expect(dispatched(batch.encode(1_000)).at(-1)).toEqual({ kind: 'presence', accountId, online: true });
});

test('signals that do not fit are lost, and words that must not be lost are said', () => {
  const batch = new NotificationBatch();
  batch.add('nonMessageChangesCommitted', [1 as ConversationId]);
  for (let id = 1; id <= 20; id += 1) {
    const accountId = id as AccountId;
    batch.add('ephemeral', { kind: 'typing', conversationId: 1 as ConversationId, accountId });
  }
  expect(batch.encode(40)).toBe('r1');
  batch.add('messagesCommitted', new Map([[7 as ConversationId, 9 as Seq]]));
  expect(batch.encode(10)).toBe('a7:9;r1');
  expect(batch.encode(6)).toBe('*');
});
