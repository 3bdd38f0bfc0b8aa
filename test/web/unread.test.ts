import { describe, expect, test } from '@jest/globals';
import type { Conversation, Message } from '../../client/core/shapes.ts';
import { byActivity, unreadOf, titleCountOf, withListed, withMessage, withRead } from '../../web/core/unread.ts';

const reader = { id: 1, nick: 'alice' };
const listed = (changes: Partial<Conversation> = {}): Conversation => ({
  id: 7,
  kind: 'group',
  title: 'Lobby',
  peer: null,
  role: 'member',
  members: 2,
  archived: false,
  first_seq: 1,
  last_seq: 10,
  last_at: null,
  read_seq: 8,
  unread: 2,
  unread_mentions: 1,
  ...changes,
});
const message = (seq: number, sender = 2, mentions: string[] = []): Message => ({
  id: `7:${seq}`,
  seq,
  rev: seq,
  sender: { id: sender, name: 'X', nick: 'x', kind: 'user' },
  text: '',
  sent_at: '2026-11-26T10:00:00Z',
  mentions,
});

describe('what is unread', () => {
  test('is what is behind the read position, and never below the first message', () => {
    expect(unreadOf(withListed(undefined, listed()))).toBe(2);
    expect(unreadOf(withListed(undefined, listed({ first_seq: 10, read_seq: 3 })))).toBe(1);
    expect(unreadOf(withListed(undefined, listed({ first_seq: 11, read_seq: 3 })))).toBe(0);
  });

  test('grows with messages of others and ends with an own one', () => {
    let entry = withListed(undefined, listed());
    entry = withMessage(entry, message(11, 2, ['ALICE']), reader);
    expect([unreadOf(entry), entry.unreadMentionCount]).toEqual([3, 2]);
    entry = withMessage(entry, message(5, 2, ['alice']), reader);
    expect([unreadOf(entry), entry.unreadMentionCount]).toEqual([3, 2]);
    entry = withMessage(entry, message(12, 1), reader);
    expect([unreadOf(entry), entry.unreadMentionCount, entry.readSeq]).toEqual([0, 0, 12]);
  });

  test('is moved forward by reading only', () => {
    let entry = withRead(withListed(undefined, listed()), 9);
    expect([unreadOf(entry), entry.unreadMentionCount]).toEqual([1, 1]);
    entry = withRead(entry, 3);
    expect(entry.readSeq).toBe(9);
    expect(withRead(entry, 10).unreadMentionCount).toBe(0);
  });

  test('is not set back by a list that is older than what was heard', () => {
    const entry = withRead(withMessage(withListed(undefined, listed()), message(11), reader), 11);
    const merged = withListed(entry, listed({ title: 'New title' }));
    expect([merged.lastSeq, merged.readSeq, unreadOf(merged), merged.info.title]).toEqual([11, 11, 0, 'New title']);
    expect(merged.unreadMentionCount).toBe(0);
    expect(unreadOf(withListed(entry, listed({ last_seq: 14, read_seq: 11 })))).toBe(3);
  });

  test('waits for a person where it mentions them, or is private', () => {
    expect(titleCountOf(withListed(undefined, listed()))).toBe(1);
    expect(titleCountOf(withListed(undefined, listed({ kind: 'private', unread_mentions: 0 })))).toBe(2);
  });
});

describe('the newest message of a conversation', () => {
  const lastMessage = { seq: 10, sender: message(10).sender, text: 'from the list', attachments: 0 };
  const textOf = (entry: ReturnType<typeof withListed>) => entry.lastMessage?.text;

  test('is that of the list, and then what is heard: a newer one, an edit and a deletion of it', () => {
    let entry = withListed(undefined, listed({ last_message: lastMessage }));
    expect(textOf(entry)).toBe('from the list');
    entry = withMessage(entry, { ...message(10), text: 'edited' }, reader);
    expect([textOf(entry), unreadOf(entry)]).toEqual(['edited', 2]);
    entry = withMessage(entry, { ...message(9), text: 'an edit of one before' }, reader);
    expect(textOf(entry)).toBe('edited');
    entry = withMessage(entry, { ...message(11), text: 'x'.repeat(1_000) }, reader);
    expect(textOf(entry)).toBe('x'.repeat(200));
    entry = withMessage(entry, { ...message(11), deleted: true }, reader);
    expect([textOf(entry), entry.lastMessage?.deleted]).toEqual(['', true]);
  });

  test('is not set back by a list that is older than what was heard', () => {
    const known = withMessage(
      withListed(undefined, listed({ last_message: lastMessage })),
      { ...message(10), text: 'edited' },
      reader,
    );
    expect(textOf(withListed(known, listed({ last_message: lastMessage })))).toBe('edited');
    const newer = { ...lastMessage, seq: 12, text: 'newer' };
    expect(textOf(withListed(known, listed({ last_seq: 12, last_message: newer })))).toBe('newer');
  });
});

test('the list begins with the newest message, and a conversation without messages has the place of its creation', () => {
  const at = (id: number, lastAt: string | null, createdAt: string) =>
    withListed(undefined, listed({ id, last_at: lastAt, created_at: createdAt }));
  const list = [
    at(1, '2026-11-26T10:00:00Z', '2026-11-01T10:00:00Z'),
    at(2, null, '2026-11-27T10:00:00Z'),
    at(3, '2026-11-28T10:00:00Z', '2026-11-02T10:00:00Z'),
    at(4, null, '2026-11-01T10:00:00Z'),
  ];
  expect(list.sort(byActivity).map(({ info }) => info.id)).toEqual([3, 2, 1, 4]);
});
