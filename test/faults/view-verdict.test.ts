import { describe, expect, test } from '@jest/globals';
import { judgeViews, ShownMessages } from '../../faults/web/view-verdict.ts';

const STORED = ['post 0', 'tab 0 text 1', 'post 1', 'tab 0 text 2'].map((text, n) => ({ seq: n + 1, text }));
const SENT = ['tab 0 text 1', 'tab 0 text 2'];

function shown(...walks: (readonly (readonly [number, string])[])[]): ShownMessages {
  const messages = new ShownMessages();
  for (const walk of walks) messages.note(walk);
  return messages;
}
const whole = () => shown(STORED.map(({ seq, text }) => [seq, text]));

describe('the verdict on what tabs show', () => {
  test('finds nothing where each tab shows all that is stored, in whatever walks', () => {
    const inParts = shown(
      [
        [1, 'post 0'],
        [2, 'tab 0 text 1'],
        [3, 'post 1'],
      ],
      [
        [3, 'post 1'],
        [4, 'tab 0 text 2'],
      ],
    );
    expect(judgeViews({ stored: STORED, shown: [whole(), inParts], sent: [SENT, []] })).toEqual([]);
  });

  test('misses a message that one tab did not show', () => {
    const partial = shown(STORED.filter(({ seq }) => seq !== 3).map(({ seq, text }) => [seq, text]));
    expect(judgeViews({ stored: STORED, shown: [whole(), partial], sent: [] })).toEqual([
      'tab 1: 1 messages were not shown, the first is 3',
    ]);
  });

  test('sees a text under another seq, one that is not stored, and a seq with two texts', () => {
    const wrong = shown(
      [
        [1, 'post 1'],
        [2, 'tab 0 text 1'],
      ],
      [
        [1, 'post 0'],
        [3, 'post 0'],
        [4, 'tab 0 text 2'],
        [5, 'post 2'],
      ],
    );
    expect(judgeViews({ stored: STORED, shown: [wrong], sent: [] })).toEqual([
      'tab 0: message 1 was shown with two texts',
      'tab 0: 1 messages were shown with the text of others',
      'tab 0: 1 messages were shown that are not stored',
    ]);
  });

  test('wants each text of a tab stored once, in its order', () => {
    const lost = judgeViews({ stored: STORED, shown: [], sent: [[...SENT, 'tab 0 text 3']] });
    expect(lost).toEqual(['tab 0: 1 of its texts were not stored, the first is "tab 0 text 3"']);
    const late = judgeViews({ stored: STORED, shown: [], sent: [SENT.toReversed()] });
    expect(late).toEqual(['tab 0: 1 of its texts were stored before an earlier one']);
    const twice = judgeViews({ stored: [...STORED, { seq: 5, text: 'post 1' }], shown: [], sent: [] });
    expect(twice).toEqual(['1 messages were stored twice']);
  });
});
