import { afterEach, expect, test } from '@jest/globals';
import { EventLoopDelay } from '../../src/metrics/event-loop-delay.ts';
import { eventually } from '../support/eventually.ts';

const delay = new EventLoopDelay();
afterEach(() => delay.stop());

/** Blocks the event loop for this time, as a long computation does. */
function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

test('the delay of the event loop shows what kept it from going on, until it is stopped', async () => {
  delay.start();
  delay.start();
  block(400);
  const { sum } = await eventually(
    async () => delay.delayS.read(),
    ({ count }) => count > 0,
  );
  // The timer that measures the delay was due after 50 ms, and fired after the 400 ms of `block`.
  expect(sum).toBeGreaterThan(0.3);
  delay.stop();
  const { count } = delay.delayS.read();
  block(100);
  await new Promise(setImmediate);
  expect(delay.delayS.read().count).toBe(count);
});
