import { expect, test } from '@jest/globals';
import { SlowStart } from '../../src/delivery/slow-start.ts';

test('a ramp doubles until it holds nothing back', () => {
  const slowStart = new SlowStart();
  expect([slowStart.maxBatchOrInFlight, slowStart.pacingMs]).toEqual([256, 0]);
  slowStart.beginSlowStart();
  const seen: number[] = [];
  for (let n = 0; n < 10; n += 1) {
    seen.push(slowStart.pacingMs);
    slowStart.doubleLimit();
  }
  expect(seen).toEqual([256, 128, 64, 32, 16, 8, 4, 2, 0, 0]);
});
