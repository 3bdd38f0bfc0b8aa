import { describe, expect, test } from '@jest/globals';
import { messageId, parseMessageId, type ConversationId, type LogEpoch, type Seq } from '../../src/model/ids.ts';

const idOf = (conversation: number, seq: number, epoch: number): string =>
  messageId(conversation as ConversationId, seq as Seq, epoch as LogEpoch);

describe('the id of a message', () => {
  test.each([
    ['7:42', [7, 42, 0]],
    ['7:42.29711520', [7, 42, 29_711_520]],
    ['999999999999999:999999999999999.999999999', [999_999_999_999_999, 999_999_999_999_999, 999_999_999]],
  ] as const)('%s is made and read', (id, [conversationId, seq, logEpoch]) => {
    expect(idOf(conversationId, seq, logEpoch)).toBe(id);
    expect(parseMessageId(id)).toEqual({ conversationId, seq, logEpoch });
  });

  test.each([
    '',
    '7',
    '7:',
    '7:42.',
    '7:42.0',
    '7:42.01',
    '7:042',
    '0:42',
    '7:42.1.1',
    '7:42.1234567890',
    ' 7:42',
    '7:-1',
  ])('is not %j', (text) => {
    expect(parseMessageId(text)).toBeNull();
  });
});
