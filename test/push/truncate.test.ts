import { describe, expect, test } from '@jest/globals';
import { truncateToJsonBytes, jsonBytesWithoutQuotes } from '../../src/push/truncate.ts';
import { within } from '../run/machine-speed.ts';

describe('a text that has to fit', () => {
  test('stays as it is where it does', () => {
    for (const text of ['', 'a', 'Übung 漢字 👩‍👩‍👧‍👦 "quoted"\n'])
      expect(truncateToJsonBytes(text, jsonBytesWithoutQuotes(text))).toBe(text);
  });

  test('is cut between the characters that people see, whatever the bound', () => {
    const parts = ['a', 'é', '漢', '👩‍👩‍👧‍👦', '🇩🇪', 'e\u0301', '"', '\n', '\u0001'];
    const text = parts.join('').repeat(3);
    const graphemes = [...new Intl.Segmenter().segment(text)].map(({ segment }) => segment);
    const beginnings = new Set(graphemes.map((_, n) => graphemes.slice(0, n).join('')));
    for (let bound = 40; bound < jsonBytesWithoutQuotes(text); bound += 1) {
      const cut = truncateToJsonBytes(text, bound);
      expect(jsonBytesWithoutQuotes(cut)).toBeLessThanOrEqual(bound);
      expect(cut.endsWith('…')).toBe(true);
      expect(beginnings).toContain(cut.slice(0, -1));
    }
  });

  test('is cut inside a character that is larger than all the room', () => {
    const zalgo = `e${'\u0301'.repeat(1_000)}`;
    const cut = truncateToJsonBytes(zalgo, 100);
    expect(cut).toBe(`e${'\u0301'.repeat(48)}…`);
    expect(jsonBytesWithoutQuotes(cut)).toBeLessThanOrEqual(100);
    expect(truncateToJsonBytes('👩‍👩‍👧‍👦', 9)).toBe('👩…');
    expect([
      truncateToJsonBytes('漢漢', 4),
      truncateToJsonBytes('漢漢', 3),
      truncateToJsonBytes('漢漢', 2),
      truncateToJsonBytes('漢漢', 0),
    ]).toEqual(['…', '…', '', '']);
  });

  test('comes out as valid Unicode', () => {
    expect(truncateToJsonBytes('a\ud83d', 10)).toBe('a\ufffd');
    expect(truncateToJsonBytes('\udc00'.repeat(10), 9)).toBe('\ufffd\ufffd…');
    expect(truncateToJsonBytes(`${'a'.repeat(9)}👩`, 10)).toBe('aaaaaaa…');
  });

  test('is not looked at behind the bound', () => {
    const long = '漢'.repeat(2_000_000);
    const started = performance.now();
    for (let n = 0; n < 20; n += 1) truncateToJsonBytes(long, 4_000);
    expect(performance.now() - started).toBeLessThan(within(5_000));
  });
});
