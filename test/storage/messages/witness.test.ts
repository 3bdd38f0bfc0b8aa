import { describe, expect, test } from '@jest/globals';
import type { ConversationId } from '../../../src/model/ids.ts';
import {
  MAX_WITNESSED_CONVERSATIONS,
  NOTICE_CHANGED_SEQ,
  UNKNOWN_CHANGED_SEQ,
  Witness,
} from '../../../src/storage/messages/witness.ts';

const id = (n: number): ConversationId => n as ConversationId;

describe('a witness', () => {
  test('knows the newest message and change of a conversation, in whatever order they are told', () => {
    const witness = new Witness();
    witness.recordMessage(id(1), 5, 500);
    witness.recordMessage(id(1), 4, 400);
    witness.recordChange(id(1), { rev: 9, changedSeq: NOTICE_CHANGED_SEQ, changedAtMs: 900 });
    witness.recordChange(id(1), { rev: 8, changedSeq: 2, changedAtMs: 800 });
    expect(witness.heads).toEqual([
      { conversationId: 1, seq: 5, sentAtMs: 500, rev: 9, changedSeq: NOTICE_CHANGED_SEQ, changedAtMs: 900 },
    ]);
    witness.recordMessage(id(1), 6);
    witness.recordChange(id(1), { rev: 9, changedSeq: UNKNOWN_CHANGED_SEQ, changedAtMs: 0 });
    expect(witness.heads).toMatchObject([
      { seq: 6, sentAtMs: 0, rev: 9, changedSeq: NOTICE_CHANGED_SEQ, changedAtMs: 900 },
    ]);
    witness.recordMessage(id(1), 6, 600);
    expect(witness.heads).toMatchObject([{ seq: 6, sentAtMs: 600 }]);
  });

  test('keeps the conversations that changed last', () => {
    const witness = new Witness();
    for (let n = 1; n <= MAX_WITNESSED_CONVERSATIONS; n += 1) witness.recordMessage(id(n), 1);
    witness.recordMessage(id(1), 2);
    witness.recordMessage(id(MAX_WITNESSED_CONVERSATIONS + 1), 1);
    const known = new Set(witness.heads.map(({ conversationId }) => conversationId));
    expect(known.size).toBe(MAX_WITNESSED_CONVERSATIONS);
    expect([known.has(id(1)), known.has(id(2)), known.has(id(MAX_WITNESSED_CONVERSATIONS + 1))]).toEqual([
      true,
      false,
      true,
    ]);
  });

  test('says once which conversations have to be looked up, the last ones', () => {
    const witness = new Witness();
    witness.recordMessage(id(1), 1);
    witness.recordUnknownChange(id(2));
    witness.recordMessage(id(3), 1, 100);
    witness.recordRevs([{ conversationId: id(4), rev: 2 as never }]);
    expect(witness.takeNewestIncomplete(2)).toEqual([2, 4]);
    expect(witness.takeNewestIncomplete(2)).toEqual([]);
    for (const each of [1, 2, 3, 1]) witness.recordUnknownChange(id(each));
    expect(witness.takeNewestIncomplete(2)).toEqual([3, 1]);
  });

  test('does not lose what it knows by now to what it knew before', () => {
    const witness = new Witness();
    witness.recordMessage(id(1), 7);
    witness.load([{ conversationId: id(1), seq: 5, sentAtMs: 500, rev: 6, changedSeq: 5, changedAtMs: 500 }]);
    expect(witness.heads).toMatchObject([{ seq: 7, sentAtMs: 0, rev: 6 }]);
    witness.forget([id(1)]);
    expect(witness.heads).toEqual([]);
  });
});
