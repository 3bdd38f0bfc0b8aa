import { describe, expect, test } from '@jest/globals';
import type { Message, Notice } from '../../client/core/shapes.ts';
import { MessagePages } from '../../web/core/message-pages.ts';

const message = (seq: number, rev = seq): Message => ({
  id: `7:${seq}`,
  seq,
  rev,
  sender: { id: 1, name: 'A', nick: 'a', kind: 'user' },
  text: String(rev),
  sent_at: '2026-11-26T10:00:00Z',
});
const notice = (after: number, kind = 'joined'): Notice => ({
  kind,
  actor: null,
  details: {},
  at: '',
  after_seq: after,
});
const messages = (from: number, to: number): Message[] =>
  Array.from({ length: to - from + 1 }, (_, at) => message(from + at));

describe('pages of messages', () => {
  test('keep the newer state of a message, whichever comes first', () => {
    const pages = new MessagePages();
    pages.put(7, [message(1, 9)]);
    pages.put(7, [message(1, 3)]);
    expect(pages.get(7, 1)!.rev).toBe(9);
    expect(pages.get(8, 1)).toBeUndefined();
  });

  test('say what is missing, page by page', () => {
    const pages = new MessagePages();
    expect(pages.firstMissing(7, { fromSeq: 50, toSeq: 250 })).toEqual({ fromSeq: 50, toSeq: 100 });
    pages.put(7, messages(50, 120));
    expect(pages.firstMissing(7, { fromSeq: 50, toSeq: 250 })).toEqual({ fromSeq: 121, toSeq: 200 });
    pages.put(7, messages(130, 250));
    expect(pages.firstMissing(7, { fromSeq: 50, toSeq: 250 })).toEqual({ fromSeq: 121, toSeq: 129 });
    pages.put(7, messages(121, 129));
    expect(pages.firstMissing(7, { fromSeq: 50, toSeq: 250 })).toBeNull();
  });

  test('are 30 of a conversation and 200 in all: those that were used last', () => {
    const pages = new MessagePages();
    pages.put(7, [message(1)]);
    for (let page = 1; page <= 29; page += 1) pages.put(7, [message(page * 100 + 1)]);
    pages.touch(7, { fromSeq: 1, toSeq: 1 });
    pages.put(7, [message(3_001)]);
    expect([pages.hasPageOf(7, 1), pages.hasPageOf(7, 101), pages.hasPageOf(7, 201)]).toEqual([true, false, true]);
    for (let conversation = 100; conversation < 271; conversation += 1) pages.put(conversation, [message(1)]);
    expect(pages.hasPageOf(7, 201)).toBe(false);
    expect([...Array(271).keys()].filter((each) => pages.hasPageOf(each, 1)).length).toBeLessThanOrEqual(200);
  });

  test('have the notices after each message, those before the first one, and the newest 200 at most', () => {
    const pages = new MessagePages();
    expect(pages.hasPageOfNotice(7, notice(0))).toBe(false);
    pages.putNotice(7, 5, notice(2, 'left'));
    pages.putNotice(7, 3, notice(2, 'joined'));
    pages.putNotice(7, 1, notice(0, 'created'));
    pages.put(7, messages(1, 150));
    pages.putNotice(7, 200, notice(150));
    expect(pages.noticesAfter(7, 2).map(({ kind }) => kind)).toEqual(['joined', 'left']);
    expect([0, 1, 150].map((seq) => pages.noticesAfter(7, seq).length)).toEqual([1, 0, 1]);
    expect([pages.hasPageOfNotice(7, notice(0)), pages.hasPageOfNotice(7, notice(201))]).toEqual([true, false]);
    expect(pages.noticesAfter(8, 2)).toEqual([]);
    for (let rev = 201; rev < 500; rev += 1) pages.putNotice(7, rev, notice(3));
    expect([pages.noticesAfter(7, 3).length, pages.noticesAfter(7, 2).length]).toEqual([200, 0]);
  });

  test('forget notices that the server has lost', () => {
    const pages = new MessagePages();
    pages.putNotice(7, 3, notice(2, 'joined'));
    pages.putNotice(7, 5, notice(2, 'left'));
    expect(pages.noticesAfter(7, 2)).toHaveLength(2);
    pages.forgetAfterRev(7, 3);
    expect(pages.noticesAfter(7, 2).map(({ kind }) => kind)).toEqual(['joined']);
  });

  test('forget what the server has lost, and nothing else', () => {
    const pages = new MessagePages();
    pages.put(7, messages(1, 10));
    pages.put(8, messages(1, 10));
    pages.forgetAfterRev(7, 6);
    expect(pages.firstMissing(7, { fromSeq: 1, toSeq: 10 })).toEqual({ fromSeq: 7, toSeq: 10 });
    expect(pages.firstMissing(8, { fromSeq: 1, toSeq: 10 })).toBeNull();
    pages.forget(8);
    expect(pages.get(8, 1)).toBeUndefined();
  });
});
