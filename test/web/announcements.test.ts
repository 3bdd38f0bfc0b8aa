import { afterEach, describe, expect, test } from '@jest/globals';
import type { Message } from '../../client/core/shapes.ts';
import { Announcements } from '../../web/timeline/announcements.ts';
import { eventually } from '../support/eventually.ts';

const OWN = 1;
const INTERVAL_MS = 100;

const started: Announcements[] = [];
afterEach(() => {
  for (const announcements of started.splice(0)) announcements.stop();
});

const message = (seq: number, sender: number): Message => ({
  id: `7:${seq}`,
  seq,
  rev: seq,
  sender: { id: sender, name: 'X', nick: 'x', kind: 'user' },
  text: `text ${seq}`,
  sent_at: '2026-11-26T10:00:00Z',
});

function start(lastSeq: number) {
  const messages = new Map<number, Message>();
  const said: { text: string; atMs: number }[] = [];
  const announcements = new Announcements({
    lastSeq,
    messageAt: (seq) => messages.get(seq),
    isOwn: ({ sender }) => sender.id === OWN,
    wordsOf: ({ count, onlyMessage: only }) => only?.text ?? `${count} new`,
    intervalMs: INTERVAL_MS,
  });
  started.push(announcements);
  announcements.text.subscribe((text) => {
    if (text !== '') said.push({ text, atMs: performance.now() });
  });
  let seq = lastSeq;
  const receive = (sender = 2): void => {
    seq += 1;
    messages.set(seq, message(seq, sender));
    announcements.update(seq);
  };
  const texts = () => said.map(({ text }) => text.trim());
  return { announcements, said, receive, texts };
}

describe('a screen reader', () => {
  test('reads a message that comes alone, and of many that come at once the number', async () => {
    const { said, receive, texts } = start(40);
    receive();
    await eventually(texts, ({ length }) => length === 1);
    for (let count = 0; count < 12; count += 1) receive();
    await eventually(texts, ({ length }) => length === 2);
    expect(texts()).toEqual(['text 41', '12 new']);
    expect(said[1]!.atMs - said[0]!.atMs).toBeGreaterThanOrEqual(INTERVAL_MS - 2);
  });

  test('reads nothing of what was there, nor of own messages', async () => {
    const { receive, texts } = start(40);
    receive(OWN);
    receive(OWN);
    receive();
    await eventually(texts, ({ length }) => length > 0);
    expect(texts()).toEqual(['text 43']);
  });

  test('hears the same text twice, since the region changes', () => {
    const { announcements, said, texts } = start(0);
    announcements.say('kept');
    announcements.say('kept');
    expect(texts()).toEqual(['kept', 'kept']);
    expect(said[0]!.text).not.toBe(said[1]!.text);
  });

  test('hears messages again whose seqs a server that lost some gives out again', async () => {
    const { announcements, texts } = start(40);
    announcements.update(30);
    announcements.update(32);
    await eventually(texts, ({ length }) => length > 0);
    expect(texts()).toEqual(['2 new']);
  });
});
