import { describe, expect, test } from '@jest/globals';
import { matchesMention, mentionAt } from '../../web/text/begun-mention.ts';

/** The mention that is being typed at the caret; `|` in the text marks the caret. */
const at = (text: string) => {
  const caret = text.indexOf('|');
  return mentionAt(text.replace('|', ''), caret, caret);
};

describe('a mention that somebody begins', () => {
  test.each([
    ['@b|', { atSignIndex: 0, text: 'b' }],
    ['hello @bob|', { atSignIndex: 6, text: 'bob' }],
    ['a\n@bo| and more', { atSignIndex: 2, text: 'bo' }],
    ['(@mo.na-li_s|', { atSignIndex: 1, text: 'mo.na-li_s' }],
    ['😀@b|', { atSignIndex: 2, text: 'b' }],
    ['@Jür|', { atSignIndex: 0, text: 'Jür' }],
  ])('is found in %j', (text, expected) => {
    expect(at(text)).toEqual(expected);
  });

  test.each(['|', '@|', 'mail me@b|', 'a/@b|', '@@b|', '@b |', `@${'b'.repeat(33)}|`])('is not there in %j', (text) => {
    expect(at(text)).toBeNull();
  });

  test('is found behind a long text', () => {
    expect(at(`${'x'.repeat(40_000)} @b|`)).toEqual({ atSignIndex: 40_001, text: 'b' });
  });

  test('is not there where text is selected', () => {
    expect(mentionAt('@bob', 2, 4)).toBeNull();
  });

  test('may mean the nick or any part of the name', () => {
    const account = { nick: 'bb', name: 'Bob van Builder' };
    expect(['b', 'BUI', 'van', 'ob', 'bb'].map((typed) => matchesMention(account, typed))).toEqual([
      true,
      true,
      true,
      false,
      true,
    ]);
  });
});
