import { expect, test } from '@jest/globals';
import { Ramp } from '../../src/delivery/ramp.ts';

test('a ramp doubles until it holds nothing back', () => {
  const ramp = new Ramp();
  expect([ramp.allowance, ramp.gapMs]).toEqual([256, 0]);
  ramp.begin();
  const seen: number[] = [];
  for (let n = 0; n < 10; n += 1) {
    seen.push(ramp.gapMs);
    ramp.grow();
  }
  expect(seen).toEqual([256, 128, 64, 32, 16, 8, 4, 2, 0, 0]);
});
