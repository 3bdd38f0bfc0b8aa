import { describe, expect, test } from '@jest/globals';
import { RowHeights } from '../../web/timeline/row-heights.ts';

describe('the heights of rows', () => {
  test('say the same as a plain sum, after any measurements', () => {
    const heights = new RowHeights();
    const plain: number[] = [];
    let state = 11;
    const random = (below: number): number => {
      state = (state * 48_271) % 2_147_483_647;
      return state % below;
    };
    for (let round = 0; round < 200; round += 1) {
      const count = random(10) === 0 ? random(900) : plain.length + random(5);
      heights.setRowCount(count);
      while (plain.length < count) plain.push(52);
      plain.length = count;
      for (let each = 0; each < (count === 0 ? 0 : 20); each += 1) {
        const [index, height] = [random(count), 1 + random(200)];
        heights.set(index, height);
        plain[index] = height;
      }
      const sum = (to: number): number => plain.slice(0, to).reduce((a, b) => a + b, 0);
      expect(heights.totalHeight).toBe(sum(count));
      const index = count === 0 ? 0 : random(count);
      expect(heights.offsetOf(index)).toBe(sum(index));
      if (count === 0) continue;
      expect(heights.indexAt(sum(index))).toBe(index);
      expect(heights.indexAt(sum(index) + plain[index]! - 1)).toBe(index);
    }
  });

  test('find the first and the last row beyond the ends', () => {
    const heights = new RowHeights();
    heights.setRowCount(1_000);
    expect([heights.indexAt(-100), heights.indexAt(1e9)]).toEqual([0, 999]);
  });

  test('of a million rows make a list that browsers can draw', () => {
    const heights = new RowHeights();
    heights.setRowCount(1_000_000);
    expect(heights.totalHeight).toBeLessThanOrEqual(12_000_001);
    expect(heights.indexAt(heights.offsetOf(654_321))).toBe(654_321);
  });

  test('tell whether a measurement changed anything', () => {
    const heights = new RowHeights();
    heights.setRowCount(2);
    expect([heights.set(0, 52), heights.set(0, 60), heights.set(0, 60), heights.set(2, 60)]).toEqual([
      false,
      true,
      false,
      false,
    ]);
  });
});
