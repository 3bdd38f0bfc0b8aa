import { expect, test } from '@jest/globals';
import { LocalBus, type Signal } from '../../src/bus/bus.ts';
import { hearWord, Outbox } from '../../src/bus/words.ts';
import type { AccountId, ConversationId, Seq } from '../../src/model/ids.ts';

/** What another node hears of these words. */
function heardOf(text: string): Signal[] {
  const local = new LocalBus();
  const heard: Signal[] = [];
  local.subscribe({ signal: (signal) => heard.push(signal) });
  for (const word of text.split(';')) expect(hearWord(local, word[0], word.slice(1).split(','))).toBe(true);
  return heard;
}

test('of several words about one thing the latest is heard last', () => {
  const outbox = new Outbox();
  const accountId = 5 as AccountId;
  for (const online of [true, false, true]) outbox.add('signal', { kind: 'presence', accountId, online });
  expect(heardOf(outbox.text(1_000)).at(-1)).toEqual({ kind: 'presence', accountId, online: true });
});

test('signals that do not fit are lost, and words that must not be lost are said', () => {
  const outbox = new Outbox();
  outbox.add('revised', [1 as ConversationId]);
  for (let id = 1; id <= 20; id += 1) {
    const accountId = id as AccountId;
    outbox.add('signal', { kind: 'typing', conversationId: 1 as ConversationId, accountId });
  }
  expect(outbox.text(40)).toBe('r1');
  outbox.add('advanced', new Map([[7 as ConversationId, 9 as Seq]]));
  expect(outbox.text(10)).toBe('a7:9;r1');
  expect(outbox.text(6)).toBe('*');
});
